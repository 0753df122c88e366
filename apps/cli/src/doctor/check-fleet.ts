import type { Cluster } from "@konverge/client";
import type { Asking } from "../ask/run-with-client.ts";
import { readVersion } from "../process/version.ts";
import { oneLine } from "../process/explain-failure.ts";
import { describeNoWorkers } from "../text/describe-no-workers.ts";
import { failedCheck, type Check } from "./check.ts";

interface FleetToCheck extends Asking {
  /** Checks all clusters that workers serve, instead of `cluster`. */
  readonly servesSeveral: boolean;
}

/** Checks workers, controllers, workflows and breakers. */
export async function checkFleet(asking: FleetToCheck): Promise<Check[]> {
  const { client, cluster, settings, servesSeveral } = asking;
  const checks: Check[] = [];
  if (settings.server !== undefined) {
    try {
      const { name, role } = await client.whoami();
      checks.push({
        check: "api",
        level: "ok",
        detail: `${settings.server}, as ${name} (${role})`,
      });
    } catch (error) {
      return [failedCheck("api", error)];
    }
  }
  try {
    const [clusters, guards] = await Promise.all([client.clusters.list(), client.guards.list()]);
    const served = clusters.items.filter(isEngaged).map(({ name }) => name);
    checks.push(...clusterChecks(clusters.items));
    if (servesSeveral && served.length > 0) {
      for (const name of served)
        checks.push(...(await checkCluster(client, name, [])).map(on(name)));
    } else checks.push(...(await checkCluster(client, cluster, served)));
    checks.push(...guards.items.flatMap(guardChecks));
  } catch (error) {
    checks.push(failedCheck("fleet", error));
  }
  return checks;
}

const isEngaged = ({ workers }: Cluster) => workers.some(({ state }) => state === "engaged");

const on =
  (cluster: string) =>
  (one: Check): Check => ({ ...one, check: `${one.check} on ${cluster}` });

async function checkCluster(
  client: Asking["client"],
  cluster: string,
  served: readonly string[],
): Promise<Check[]> {
  const [workers, queues, { problems }] = await Promise.all([
    client.workers.list({ cluster }),
    client.queues.list({ cluster }),
    client.overview({ cluster }),
  ]);
  const checks: Check[] = [workerCheck(workers.items, { cluster, served })];
  checks.push(...versionChecks(workers.items), ...cacheChecks(workers.items));
  for (const { controller, workers: count, waiting } of queues.items) {
    if (count > 0) continue;
    const detail = `no worker runs it, ${waiting} keys waiting; start a worker with its configuration`;
    checks.push({ check: `controller ${controller}`, level: "warn", detail });
  }
  for (const { workflow, workers: count } of queues.workflows) {
    if (count > 0) continue;
    const detail = "no worker runs it; start a worker with its configuration";
    checks.push({ check: `workflow ${workflow}`, level: "warn", detail });
  }
  checks.push(...problems.flatMap(problemChecks));
  return checks;
}

type Workers = Awaited<ReturnType<Asking["client"]["workers"]["list"]>>["items"];

function workerCheck(
  workers: Workers,
  { cluster, served }: { readonly cluster: string; readonly served: readonly string[] },
): Check {
  const roles = new Set(workers.map(({ role }) => role));
  if (workers.length === 0) {
    return { check: "workers", level: "warn", detail: describeNoWorkers(cluster, served) };
  }
  const missing = (["watch", "work"] as const).find(
    (role) => !roles.has(role) && !roles.has("all"),
  );
  if (missing !== undefined) {
    const detail = `${workers.length} live, none with role ${missing}; start a worker with --role ${missing}`;
    return { check: "workers", level: "warn", detail };
  }
  return { check: "workers", level: "ok", detail: `${workers.length} live` };
}

function versionChecks(workers: Workers): Check[] {
  const versions = new Set(workers.map(({ version }) => version));
  const own = readVersion();
  if (versions.size === 0 || (versions.size === 1 && versions.has(own))) return [];
  const found = [...versions].toSorted().join(", ");
  const detail = `workers run ${found}, the CLI is ${own}; complete the rollout`;
  return [{ check: "versions", level: "warn", detail }];
}

/** One line for all clusters that are engaged, and one for each other. */
function clusterChecks(clusters: readonly Cluster[]): Check[] {
  if (clusters.length === 0) return [];
  const others = clusters.filter(({ state }) => state !== "engaged");
  const detail = `${clusters.length - others.length} of ${clusters.length} engaged by all their workers`;
  return [
    { check: "served clusters", level: "ok", detail },
    ...others.map(({ name, state, reason = "see konverge cluster list", workers }): Check => {
      const count = workers.filter((worker) => worker.state === state).length;
      const level = state === "failing" ? "warn" : "ok";
      return {
        check: `served cluster ${name}`,
        level,
        detail: `${state} in ${count} of ${workers.length} workers: ${reason}`,
      };
    }),
  ];
}

/** One line per resource: a worker for all kinds has the largest cache of each. */
function cacheChecks(workers: Workers): Check[] {
  const caches = workers.flatMap((worker) => worker.caches ?? []);
  const resources = new Set(
    caches.filter(({ objects }) => objects > 0).map(({ resource }) => resource),
  );
  return [...resources].toSorted().map((resource) => {
    const sizes = caches.filter((cache) => cache.resource === resource && cache.objects > 0);
    const objects = Math.max(...sizes.map((cache) => cache.objects));
    const bytes = Math.max(...sizes.map((cache) => cache.bytes));
    const detail = `up to ${objects} objects, ${toMiB(bytes)} MiB as JSON, in ${sizes.length} of ${workers.length} workers`;
    return { check: `cache ${resource}`, level: "ok", detail };
  });
}

function toMiB(bytes: number): string {
  return (bytes / 1_048_576).toFixed(1);
}

type Guards = Awaited<ReturnType<Asking["client"]["guards"]["list"]>>["items"];

function guardChecks(guard: Guards[number]): Check[] {
  return [...breakerChecks(guard), ...rateChecks(guard)];
}

/** Fraction of the configured rate below which a reduced rate is reported. */
const LOW_RATE = 0.5;

function rateChecks({ cluster, rate: { current, limits, override } }: Guards[number]): Check[] {
  const check = `rate ${cluster}`;
  const { ratePerSecond: configured } = limits;
  if (override !== undefined) {
    const { ratePerSecond, by, at, reason } = override;
    const detail = `${by} set ${ratePerSecond} calls/s instead of ${configured} at ${at}: ${reason}; run \`konverge guard set-rate ${cluster} configured --reason ...\` to restore the configured rate`;
    return [{ check, level: "warn", detail: oneLine(detail) }];
  }
  if (current >= configured * LOW_RATE) return [];
  const detail = `errors reduced the rate to ${Math.round(current)} of ${configured} calls/s; check the API server; the rate recovers automatically`;
  return [{ check, level: "warn", detail }];
}

function breakerChecks({ cluster, breaker }: Guards[number]): Check[] {
  const check = `guard ${cluster}`;
  const { state, outage } = breaker;
  if (state === "isolated") {
    const detail = `breaker is isolated, work is deferred; run \`konverge guard reset ${cluster} --reason ...\` to end it`;
    return [{ check, level: "warn", detail }];
  }
  if (outage === undefined) return [];
  const { since, lastError, failingWorkers, liveWorkers } = outage;
  const extent = `${failingWorkers} of ${liveWorkers} workers report failures`;
  const error = lastError === undefined ? "" : `, last error: ${lastError}`;
  const detail = `breaker is ${state}, calls have failed since ${since}${error}; ${extent}. Check the API server's health and the workers' network; the breaker closes by itself`;
  return [{ check, level: "warn", detail }];
}

type Problem = Awaited<ReturnType<Asking["client"]["overview"]>>["problems"][number];

/** Problems that other checks report, and recent pauses, which are intended. */
const REPORTED_ELSEWHERE: readonly Problem["code"][] = [
  "no_workers",
  "unserved",
  "api_server_outage",
  "api_server_isolated",
  "paused",
];

/** Older pauses may have been forgotten. */
const OLD_PAUSE_MS = 24 * 3_600_000;

function problemChecks(problem: Problem): Check[] {
  const { code, message, cause, action, since = "" } = problem;
  if (code === "paused" && Date.parse(since) < Date.now() - OLD_PAUSE_MS) {
    const detail = oneLine(`${message}, since ${since}; ${action ?? "resume it"}`);
    return [{ check: "pause", level: "warn", detail }];
  }
  if (REPORTED_ELSEWHERE.includes(code)) return [];
  const what = cause === undefined ? message : `${message} (${oneLine(cause)})`;
  const detail = action === undefined ? what : `${what}; ${action}`;
  return [{ check: code.replaceAll("_", " "), level: "warn", detail }];
}
