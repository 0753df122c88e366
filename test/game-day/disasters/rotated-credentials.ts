import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startRedis } from "@konverge/infra-redis";
import { Redis } from "ioredis";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

/** Replaces the password of Redis under load: in its file, in Redis, and on all open connections. */
export async function rotateCredentials(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const admin = new Redis(redis.url);
  scene.defer(async () => admin.disconnect());
  await admin.call("ACL", "SETUSER", "game", "on", ">first-secret", "~*", "&*", "+@all");
  const file = join(await scene.folder(), "password");
  await writeFile(file, "first-secret\n");
  const redisUrl = `redis://game@127.0.0.1:${redis.port}?passwordFile=${file}`;
  const site = await openSite(scene, { redisUrl });
  const { installation, traffic } = site;
  for (const [old, next] of [
    ["first-secret", "second-secret"],
    ["second-secret", "third-secret"],
  ] as const) {
    // Both passwords are valid until the processes have the new one.
    await admin.call("ACL", "SETUSER", "game", `>${next}`);
    await writeFile(file, `${next}\n`);
    await admin.call("ACL", "SETUSER", "game", `<${old}`);
    await admin.call("CLIENT", "KILL", "USER", "game");
    await traffic.untilServed();
  }
  await scene.compare(installation, "the password of Redis was replaced twice under load", {
    minutes: 5,
    may: RECENT,
  });
  const written = await readFile(installation.journalPath, "utf8");
  const shown = [...installation.workers, ...installation.apis].flatMap(({ lines }) => lines);
  const leaks = [written, ...shown].filter((text) => /-secret/.test(text));
  scene.fact("no password is logged", leaks);

  await admin.call("ACL", "SETUSER", "game", ">fourth", "<third-secret");
  await admin.call("CLIENT", "KILL", "USER", "game");
  await scene.compare(installation, "the file has an old password", {
    minutes: 3,
    alerts: ["KonvergeRedisUnavailable"],
    problems: ["redis_unavailable"],
  });
  await writeFile(file, "fourth\n");
  await traffic.untilServed();
  await closeSite(scene, site);
}
