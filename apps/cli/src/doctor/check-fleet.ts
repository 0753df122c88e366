import type { Asking } from "../ask/run-with-client.ts";
import { readVersion } from "../process/version.ts";
import { failedCheck, type Check } from "./check.ts";

/** Checks workers, controllers, workflows and breakers. */
export async function checkFleet({ client, cluster, settings }: Asking): Promise<Check[]> {
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
    const [workers, queues, guards] = await Promise.all([
      client.workers.list({ cluster }),
      client.queues.list({ cluster }),
      client.guards.list(),
    ]);
    checks.push(workerCheck(workers.items), ...versionChecks(workers.items));
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
    for (const { cluster: name, breaker } of guards.items) {
      if (breaker.state === "closed") continue;
      const fix =
        breaker.state === "isolated"
          ? `run \`konverge guard reset ${name} --reason ...\` to end it`
          : "see docs/outages.md";
      checks.push({
        check: `guard ${name}`,
        level: "warn",
        detail: `breaker is ${breaker.state}, work is deferred; ${fix}`,
      });
    }
  } catch (error) {
    checks.push(failedCheck("fleet", error));
  }
  return checks;
}

type Workers = Awaited<ReturnType<Asking["client"]["workers"]["list"]>>["items"];

function workerCheck(workers: Workers): Check {
  const roles = new Set(workers.map(({ role }) => role));
  if (workers.length === 0) {
    const detail = "no live workers; start one with konverge worker --config <file>";
    return { check: "workers", level: "warn", detail };
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
