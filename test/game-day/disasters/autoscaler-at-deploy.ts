import { startRedis } from "@konverge/infra-redis";
import { RECENT } from "../recent.ts";
import type { Scene } from "../scene.ts";
import { closeSite, openSite, recordBacklog } from "../site.ts";

/** More objects than the workers reconcile in the time of a deployment. */
const OBJECTS = 400;
/** The target of the autoscalers in docs/cluster.md, in s. */
const TARGET_SECONDS = 10;

/** Deploys a new build one worker at a time, each time with a new leader, and records the query of the autoscaler. */
export async function deployBesideAutoscaler(scene: Scene): Promise<void> {
  const redis = await startRedis();
  scene.defer(() => redis.stop());
  const site = await openSite(scene, { redisUrl: redis.url, env: { KONVERGE_CONCURRENCY: "2" } });
  const { installation, traffic, workers } = site;
  await traffic.createRestingObjects(OBJECTS);
  const stopRecording = recordBacklog(site);
  for (const old of workers) {
    await installation.startWorker({ env: { KONVERGE_BUILD_ID: "next" } });
    await old.stop();
    await traffic.untilServed();
  }
  const largest = await stopRecording();
  await scene.compare(installation, "a new build was deployed, with two changes of the leader", {
    may: RECENT,
  });
  scene.fact(
    `the query of the autoscaler rose to ${largest.toFixed(1)} s`,
    largest < TARGET_SECONDS ? [] : [`the query rose above its target of ${TARGET_SECONDS} s`],
  );
  await closeSite(scene, site);
}
