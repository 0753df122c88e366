import type { OverviewWorkflow } from "@konverge/contracts";
import { NO_NAMESPACE } from "@konverge/core";
import type { AnnouncedWorker } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import { touches, type Caller } from "../access/caller.ts";
import type { RunTrouble } from "./find-run-problems.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { runItem } from "../runs/run-view.ts";

const HOUR_MS = 3_600_000;
/** Maximum runs that are read per status. */
const LOOKED_AT = 100;

/** Reads the workflows in the scope of the caller and their runs that need attention. */
export async function readWorkflows(
  access: QueueAccess,
  {
    cluster,
    caller,
    workers,
  }: {
    readonly cluster: string;
    readonly caller: Caller;
    readonly workers: readonly AnnouncedWorker[];
  },
): Promise<{ readonly workflows: readonly OverviewWorkflow[]; readonly runs: RunTrouble }> {
  const { workflows: store, announced } = await access.runs(cluster);
  const seen = [...announced].filter(([name]) => {
    const place = { cluster, controller: queueOfWorkflow(name), namespace: NO_NAMESPACE };
    return touches(caller.scope, place);
  });
  const workflows = await Promise.all(
    seen.map(async ([name, version]) => ({
      name,
      version,
      workers: workers.filter((worker) => worker.workflows?.[name] !== undefined).length,
      runs: await store.counts(name),
    })),
  );
  const newest = async (status: "blocked" | "compensating" | "failed") => {
    const names = workflows.filter(({ runs }) => runs[status] > 0).map(({ name }) => name);
    if (names.length === 0) return [];
    const { runs } = await store.list(names, { limit: LOOKED_AT, filter: { status } });
    return runs;
  };
  const [waiting, undoing, failed] = await Promise.all([
    newest("blocked"),
    newest("compensating"),
    newest("failed"),
  ]);
  // A blocked run remains one problem while a recheck tries its undo again.
  const blocked = [
    ...waiting,
    ...undoing.filter((run) => run.blockedReason !== undefined),
  ].toSorted((one, other) => other.createdAtMs - one.createdAtMs);
  const since = Date.now() - HOUR_MS;
  return {
    workflows: workflows.toSorted((one, other) => one.name.localeCompare(other.name)),
    runs: {
      blocked: blocked.map((run) => runItem(run, cluster)),
      failed: failed
        .filter(({ endedAtMs = 0 }) => endedAtMs > since)
        .map((run) => runItem(run, cluster)),
    },
  };
}
