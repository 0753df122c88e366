import { fileURLToPath } from "node:url";
import { startRedis } from "@konverge/infra-redis";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

const CLOCK = fileURLToPath(new URL("../../chaos/fleet-clock.ts", import.meta.url));
const HOUR_MS = 3_600_000;

/** Starts a worker whose clock is an hour behind, and replaces it. */
export async function shiftClock(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const site = await openSite(scene, { redisUrl: redis.url });
  const { installation, workers } = site;
  await workers[1].stop();
  const wrong = await installation.startWorker({
    env: { FLEET_CLOCK_OFFSET_MS: String(-HOUR_MS) },
    nodeArgs: ["--import", CLOCK],
  });
  await scene.compare(installation, "the clock of a worker is an hour behind", {
    minutes: 7,
    alerts: ["KonvergeClockSkew"],
    problems: ["clock_skew"],
    may: RECENT,
  });
  await wrong.stop();
  await installation.startWorker();
  await closeSite(scene, site);
}
