import { defined } from "@konverge/core";
import { leaseName } from "@konverge/engine";
import { WAITS_LEASE } from "./config/controller-access.ts";
import type { WorkerConnections } from "./connect-worker.ts";
import { electionTimes } from "./election-times.ts";
import type { WorkerSetup } from "./worker-setup.ts";

const BYTES_PER_KIB = 1_024;

/** Runs the workflows and their schedules, and watches what runs wait for, as the role of the worker requires. */
export function startWorkerWorkflows(
  setup: WorkerSetup,
  { runner, clusters, limits }: Pick<WorkerConnections, "runner" | "clusters" | "limits">,
): void {
  const { config, place, workerId, options } = setup;
  const { settings, metrics } = options;
  const { workflows, schedules } = config;
  for (const { name } of workflows) {
    const end = metrics.observeRuns(name, { counts: () => runner.runs().counts(name) });
    setup.atEnd("the metrics of a workflow", async () => end());
  }
  runner.work({
    workflows: settings.role === "watch" ? [] : workflows,
    clusters,
    observer: metrics,
    workerId,
    recordLimitBytes: settings.runRecordLimitKiB * BYTES_PER_KIB,
    recheckMs: settings.runRecheck,
    sweepEveryMs: settings.runSweep,
    ...defined({ concurrency: settings.concurrency, limits }),
  });
  if (settings.role === "work") return;
  if (workflows.length > 0) {
    runner.watch({
      clusters,
      namespace: settings.leaseNamespace,
      name: leaseName(place.prefix, WAITS_LEASE),
      identity: workerId,
      ...electionTimes(settings.leaseDuration),
    });
  }
  runner.schedule(schedules);
}
