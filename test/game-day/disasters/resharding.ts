import { Redis } from "ioredis";
import { moveSlot, startRedisCluster } from "../../integration/redis/redis-cluster-fixture.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

/** Moves the slot of the installation's cluster to the next node of a Redis Cluster while users send calls. */
export async function reshard(scene: Scene): Promise<void> {
  const servers = await startRedisCluster();
  scene.defer(async () => await servers[Symbol.asyncDispose]());
  const nodes = servers.primaries.map(({ port }) => new Redis({ port }));
  scene.defer(async () => {
    for (const node of nodes) node.disconnect();
  });
  const site = await openSite(scene, { redisUrl: servers.url });
  const { installation, traffic } = site;
  const slot = Number(await nodes[0]?.cluster("KEYSLOT", `${installation.name}:{default}`));
  const home = Math.floor((slot * nodes.length) / 16_384);
  const [from, to] = [nodes[home], nodes[(home + 1) % nodes.length]];
  if (from === undefined || to === undefined) throw new Error("no such node");
  const before = traffic.errors.get("redis_unavailable") ?? 0;
  await moveSlot(slot, { from, to }, async () => {
    // A call meets the slot in two places.
    await traffic.request();
  });
  await traffic.untilServed();
  const rejected = (traffic.errors.get("redis_unavailable") ?? 0) - before;
  await scene.compare(installation, `the slot has moved; ${rejected} calls had to be repeated`, {
    minutes: 5,
    may: RECENT,
  });
  await closeSite(scene, site);
}
