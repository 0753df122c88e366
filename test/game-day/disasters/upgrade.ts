import { startRedis } from "@konverge/infra-redis";
import { installPrevious } from "../../support/previous-version.ts";
import { CONFIG, type StartOptions } from "../installation.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite, type Site } from "../site.ts";

/** Rolls the workers and the API from the packages of the previous version to this one, and back, under load. */
export async function upgradeAndRollBack(scene: Scene): Promise<void> {
  const previous = await installPrevious(CONFIG, (line) => scene.log(line));
  if ("missing" in previous) {
    scene.fact(`not played: ${previous.missing}`, []);
    return;
  }
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const env = { KONVERGE_API_DRAIN: "2s" };
  const site = await openSite(scene, { redisUrl: redis.url, env }, previous);
  await roll(site, {});
  await scene.compare(site.installation, "all processes were upgraded", {
    minutes: 10,
    may: RECENT,
  });
  await roll(site, previous);
  await scene.compare(site.installation, "all processes were rolled back", {
    minutes: 10,
    may: RECENT,
  });
  // Old and new processes work side by side, and some of both die.
  for (const version of [{}, previous, {}]) {
    const [first] = site.installation.workers;
    await site.installation.startWorker(version);
    await first?.kill();
    await site.traffic.untilServed();
  }
  await scene.compare(site.installation, "workers of both versions were killed side by side", {
    minutes: 5,
    problems: ["version_skew"],
    may: RECENT,
  });
  await roll(site, {});
  await closeSite(scene, site);
}

/** Replaces all processes one by one. */
async function roll({ installation, traffic }: Site, version: StartOptions): Promise<void> {
  const [workers, apis] = [[...installation.workers], [...installation.apis]];
  for (const old of workers) {
    await installation.startWorker(version);
    await old.stop();
    await traffic.untilServed();
  }
  for (const old of apis) {
    await installation.startApi(version);
    installation.service.remove(old.url);
    await old.stop();
  }
}
