import { defined, KonvergeError } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import type { EndedRun, NewRun, RunActions, Started } from "./run-actions.ts";
import type { CancelRequest, RunView } from "./run-record.ts";

/** Requests an execution of a run. */
export type Wake = (ref: RunRef, reason: string) => Promise<void>;

/** A new run, or another one that has its key. */
export interface Begun {
  readonly id: string;
  readonly created: boolean;
  readonly end?: EndedRun;
}

/** Creates a run and requests its first execution. Returns the existing run if there is one with its id. */
export async function startRun(
  store: RunActions,
  wake: Wake,
  run: NewRun,
): Promise<RunView | Begun> {
  return await follow(await store.start(run), wake, run);
}

/** As `startRun`, after the active runs with the key of the run have been terminated, the last queued one first. */
export async function startReplacing(
  store: RunActions,
  wake: Wake,
  terminate: (ref: RunRef, request: CancelRequest) => Promise<void>,
  run: NewRun,
): Promise<RunView | Begun> {
  const { workflow, id, by } = run;
  for (;;) {
    const started = await store.start({ ...run, onExisting: "reject" });
    if (started.kind !== "rejected") return await follow(started, wake, run);
    const request = { ...defined({ by }), reason: `replaced by ${id}` };
    await terminate({ workflow, id: started.id }, request);
  }
}

async function follow(started: Started, wake: Wake, run: NewRun): Promise<RunView | Begun> {
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
