import { startRedis } from "@konverge/infra-redis";
import { until } from "../../support/until.ts";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite } from "../site.ts";

/** Replaces every API process while users send calls. */
export async function rollApi(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const site = await openSite(scene, { redisUrl: redis.url, env: { KONVERGE_API_DRAIN: "3s" } });
  const { installation, traffic, api } = site;
  const { service } = installation;
  const second = await installation.startApi();
  for (const old of [api, second]) {
    await installation.startApi();
    const stopped = old.stop();
    await until("the old process is not ready", () => !service.isReady(old.url));
    service.remove(old.url);
    await stopped;
  }
  const errors = [...traffic.errors].map(([code, count]) => `${count} calls failed with ${code}`);
  scene.fact("both API processes were replaced under load", errors);
  await scene.compare(installation, "the new processes serve", { minutes: 5, may: RECENT });
  await closeSite(scene, site);
}
