import { defined, KonvergeError } from "@konverge/core";
import type { RunRef } from "./define/run-ref.ts";
import type { ChildStarter } from "./execution/await-child.ts";
import type { NewRun, RunActions } from "./store/run-actions.ts";
import type { RunView } from "./store/run-record.ts";
import type { RunStore } from "./store/run-store.ts";
import type { StartedRun } from "./workflows.ts";

type Wake = (ref: RunRef, reason: string) => Promise<void>;

/** Creates a run and requests its first execution. Returns the existing run if there is one with its id. */
export async function startRun(
  store: RunActions,
  wake: Wake,
  run: NewRun,
): Promise<RunView | StartedRun> {
  const started = await store.start(run);
  switch (started.kind) {
    case "created":
      if (started.replaces !== undefined) {
        await wake({ workflow: run.workflow, id: started.replaces }, "superseded");
      }
      await wake(run, "start");
      return { id: run.id, created: true };
    case "exists":
      // Its creator may have died before it requested the execution.
      if (started.run.status === "queued") await wake(run, "start");
      return started.run;
    case "attached":
      return { id: started.id, created: false, ...defined({ end: started.end }) };
    case "full":
      throw new KonvergeError(
        "queue_full",
        `too many runs of "${run.workflow}" wait for the key "${run.key}"; the last is ${started.id}`,
      );
    case "rejected":
      throw new KonvergeError(
        "run_exists",
        `run ${started.id} of "${run.workflow}" holds the key "${run.key}" and has not ended; wait for it, cancel it, or start with onExisting "attach", "supersede" or "queue"`,
      );
  }
}

export function createChildStarter(store: RunStore, wake: Wake): ChildStarter {
  return {
    async start(run) {
      const started = await startRun(store, wake, run);
      return "status" in started ? started : undefined;
    },
    async cancel(ref, request) {
      if ((await store.cancel(ref, request)) === "requested") await wake(ref, "cancel");
    },
    get: (ref) => store.get(ref),
    async signal(ref, signal) {
      const stored = await store.signal(ref, signal);
      // The sender of a duplicate may have died before it requested the execution.
      if (stored === "stored" || stored === "duplicate") await wake(ref, "signal");
      return stored;
    },
  };
}
