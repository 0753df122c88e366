import { BACKLOG_AGE_QUERY } from "../../apps/cli/src/manifests/alert-rules.ts";
import type { Installation, InstallationOptions, Running, StartOptions } from "./installation.ts";
import type { Observer } from "./observer.ts";
import { RECENT } from "./recent.ts";
import type { Scene } from "./scene.ts";
import type { Traffic } from "./traffic.ts";

/** An installation with two workers, an API process and users. */
export interface Site {
  readonly installation: Installation;
  readonly traffic: Traffic;
  readonly observer: Observer;
  readonly workers: readonly [leader: Running, other: Running];
  readonly api: Running;
}

/** Starts a site and proves that nothing is reported while nothing happens. */
export async function openSite(
  scene: Scene,
  options: Pick<InstallationOptions, "redisUrl" | "env">,
  version: StartOptions = {},
): Promise<Site> {
  const installation = await scene.install(options);
  const leader = await installation.startWorker(version);
  const workers = [leader, await installation.startWorker(version)] as const;
  const api = await installation.startApi(version);
  const traffic = await scene.trafficFor(installation);
  traffic.start();
  await traffic.untilServed();
  const observer = scene.observe(installation);
  await scene.compare(installation, "two workers run under load", { minutes: 20 });
  return { installation, traffic, observer, workers, api };
}

/** Proves that all accepted work ended, and that nothing is reported any more. */
export async function closeSite(
  scene: Scene,
  { installation, traffic }: Pick<Site, "installation" | "traffic">,
  alerts: readonly string[] = [],
): Promise<void> {
  await scene.compare(installation, "afterwards", { minutes: 2, alerts, may: RECENT });
  await traffic.stop();
  await traffic.settle();
  const { missing, repeated } = traffic.countSteps();
  scene.fact(
    `${traffic.accepted} accepted requests ended, ${repeated.length} of their steps ran twice`,
    missing.map((step) => `${step} did not run`),
  );
}

/** Returns the autoscaler's query of an installation. */
export function backlogQuery({ name }: Pick<Installation, "name">): string {
  return BACKLOG_AGE_QUERY.replaceAll("INSTALLATION", name);
}

interface Backlog {
  /** The largest value of the autoscaler's query, in s. */
  readonly query: number;
  /** The largest age of a waiting key, in s, also of one that a resync requested. */
  readonly headAge: number;
}

/** Records the backlog until the returned function is called. */
export function recordBacklog({
  installation,
  observer,
}: Pick<Site, "installation" | "observer">): () => Promise<Backlog> {
  const query = backlogQuery(installation);
  const largest = { query: 0, headAge: 0 };
  let isOver = false;
  const loop = (async () => {
    while (!isOver) {
      const values = await observer.values(query);
      const ages = await observer.values("max(konverge_workqueue_head_age_seconds)");
      largest.query = Math.max(largest.query, ...values);
      largest.headAge = Math.max(largest.headAge, ...ages);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  })();
  return async () => {
    isOver = true;
    await loop;
    return largest;
  };
}
