import { defined } from "@konverge/core";
import { openMutations } from "@konverge/mutations";
import type { QueueWorker } from "@konverge/queue";
import { openKindsOf } from "./config/mutation-options.ts";
import type { WorkerConnections } from "./connect-worker.ts";
import type { WorkerSetup } from "./worker-setup.ts";

/** Applies mutations, if the configuration opens kinds and the role of the worker includes handlers. */
export function startWorkerMutations(
  setup: WorkerSetup,
  { home, lanes, restore }: Pick<WorkerConnections, "home" | "lanes" | "restore">,
): QueueWorker | undefined {
  const { config, place, shards, workerId, options } = setup;
  const { settings, log, metrics } = options;
  const kinds = openKindsOf(config.mutations);
  if (kinds.length === 0 || settings.role === "watch") return undefined;
  const mutations = openMutations({
    ...place,
    shards,
    // A mutation that a backup contains may have been made.
    fence: restore.fence("runs"),
    onError: (error) => log.warn({ err: error }, "mutation error"),
  });
  setup.atEnd("connections of the mutations", () => mutations.close());
  const unobserve = metrics.observeMutations(() => mutations.counts());
  setup.atEnd("the metrics of the mutations", async () => unobserve());
  const worker = mutations.work({
    client: home.client,
    lanes,
    kinds,
    workerId,
    mayStart: () => restore.mayStart("runs"),
    observer: metrics,
    ...defined({ concurrency: settings.concurrency }),
  });
  let isPaused = false;
  const unfollow = restore.follow("runs", (isOpen) => {
    if (!isOpen) worker.pause();
    else if (isPaused) worker.resume();
    isPaused = !isOpen;
  });
  setup.atEnd("the hold of mutations", async () => unfollow());
  return worker;
}
