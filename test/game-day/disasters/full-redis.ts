import { startRedis } from "@konverge/infra-redis";
import { Redis } from "ioredis";
import { until } from "../../support/until.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

/** More than the users of the game day add. */
const FOREIGN_BYTES = 64 * 2 ** 20;

/** Fills Redis: first above the thresholds of the alerts, then until it rejects writes. */
export async function fillRedis(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const admin = new Redis(redis.url);
  scene.defer(async () => admin.disconnect());
  const site = await openSite(scene, { redisUrl: redis.url });
  const { installation, traffic } = site;
  await admin.setrange("another-application", FOREIGN_BYTES, "x");
  const used = Number(/^used_memory:(\d+)/m.exec(await admin.info("memory"))?.[1]);
  await admin.config("SET", "maxmemory", String(Math.round(used / 0.95)));
  await scene.compare(installation, "another application fills Redis to 95 %", {
    minutes: 12,
    alerts: ["KonvergeRedisFull", "KonvergeRedisMemory"],
    problems: ["redis_memory"],
    may: RECENT,
  });

  await admin.config("SET", "maxmemory", String(Math.round(used / 2)));
  await until("a request is rejected", () => traffic.errors.has("redis_unavailable"));
  await scene.compare(installation, "Redis is full and rejects writes", {
    minutes: 12,
    alerts: ["KonvergeRedisFull", "KonvergeRedisMemory"],
    problems: ["redis_memory"],
    may: RECENT,
  });

  await admin.del("another-application");
  await admin.config("SET", "maxmemory", "0");
  await traffic.untilServed();
  await closeSite(scene, site);
}
