import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { startRedis } from "@konverge/infra-redis";
import { Redis } from "ioredis";
import { until } from "../../support/until.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

const HELD = ["keys", "runs", "pauses", "guard"] as const;

/** Restores a copy of Redis that is older than the tolerance, under running workers, and accepts it as an operator does. */
export async function restoreRedis(scene: Scene): Promise<void> {
  const dir = await scene.folder();
  const options = { dir, appendonly: false } as const;
  let redis = await startRedis(options);
  scene.defer(() => redis.stop());
  const env = { KONVERGE_RESTORE_TOLERANCE: "1s" };
  const site = await openSite(scene, { redisUrl: redis.url, env });
  const { installation, traffic } = site;
  const admin = new Redis(redis.url);
  scene.defer(async () => admin.disconnect());
  admin.on("error", () => undefined);
  await admin.save();
  const [current, backup] = [join(dir, "dump.rdb"), join(dir, "yesterday.rdb")];
  await copyFile(current, backup);
  await traffic.stop();
  await traffic.settle();
  const lost = traffic.accepted;
  traffic.start();
  await until("work is accepted after the backup", () => traffic.accepted > lost + 50);
  await traffic.stop();
  await traffic.settle();
  const effects = installation.journal().length;

  await redis.kill();
  await copyFile(backup, current);
  redis = await startRedis({ ...options, port: redis.port });
  await scene.compare(installation, "Redis was restored from an older copy", {
    minutes: 3,
    alerts: ["KonvergeRestoreHeld"],
    problems: ["restored"],
    may: RECENT,
  });
  const repeated = installation.journal().length - effects;
  scene.fact(
    "before an operator accepts the restore, no effect is repeated",
    repeated === 0 ? [] : [`${repeated} effects were repeated`],
  );
  await installation.command("restore", "accept", ...HELD);
  await traffic.untilServed();
  // The restored Redis does not know requests and runs that were accepted after the backup.
  traffic.forget();
  traffic.start();
  await closeSite(scene, site);
}
