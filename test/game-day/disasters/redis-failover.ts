import { startSentinelSet } from "../../integration/redis/redis-sentinel-fixture.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

/** Kills the primary of a set of Redis, first without and then with a failover by the Sentinel. */
export async function failOver(scene: Scene): Promise<void> {
  const cleanup = new AsyncDisposableStack();
  scene.defer(() => cleanup.disposeAsync());
  const { primary, sentinel, asked } = await startSentinelSet(cleanup);
  const redisUrl = `redis+sentinel://127.0.0.1:${sentinel.port}/mymaster`;
  const site = await openSite(scene, { redisUrl });
  // The replica is then never too old to be promoted.
  await asked.call("SENTINEL", "SET", "mymaster", "down-after-milliseconds", "600000");
  await primary.kill();
  await scene.compare(site.installation, "the primary of Redis is lost, without a failover", {
    minutes: 3,
    alerts: ["KonvergeRedisUnavailable"],
    problems: ["redis_unavailable"],
  });
  await asked.call("SENTINEL", "FAILOVER", "mymaster");
  await site.traffic.untilServed();
  await scene.compare(site.installation, "the Sentinel made the replica the primary", {
    minutes: 20,
    alerts: ["KonvergeReplicaLost"],
    may: RECENT,
  });
  await closeSite(scene, site, ["KonvergeReplicaLost"]);
}
