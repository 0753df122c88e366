import { startRedis } from "@konverge/infra-redis";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { until } from "../../support/until.ts";
import { backlogQuery, closeSite, openSite, recordBacklog } from "../site.ts";

/** More objects than the workers reconcile in the time of a deployment. */
const OBJECTS = 400;
/** The target of the autoscalers in docs/cluster.md, in s. */
const TARGET_SECONDS = 10;

/** A resync of all objects takes longer than the target of the autoscaler. */
const SLOW = { KONVERGE_CONCURRENCY: "2", GAME_DAY_RECONCILE_MS: "100" };

/** Deploys a new build one worker at a time, each time with a new leader, and records the query of the autoscaler. */
export async function deployBesideAutoscaler(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const site = await openSite(scene, { redisUrl: redis.url, env: SLOW });
  const { installation, observer, traffic, workers } = site;
  await traffic.createRestingObjects(OBJECTS);
  // Until then, the creation of the objects is a backlog of its own.
  await until("no change waits for long", async () => {
    const [age = Infinity] = await observer.values(backlogQuery(installation));
    return age < TARGET_SECONDS / 5;
  });
  const stopRecording = recordBacklog(site);
  for (const old of workers) {
    await installation.startWorker({ env: { KONVERGE_BUILD_ID: "next" } });
    await old.stop();
    await traffic.untilServed();
  }
  const { query, headAge } = await stopRecording();
  await scene.compare(installation, "a new build was deployed, with two changes of the leader", {
    may: RECENT,
  });
  scene.fact(
    `the oldest waiting key was ${headAge.toFixed(1)} s old, the query of the autoscaler at most ${query.toFixed(1)} s`,
    query < TARGET_SECONDS ? [] : [`the query rose above its target of ${TARGET_SECONDS} s`],
  );
  await closeSite(scene, site);
}
