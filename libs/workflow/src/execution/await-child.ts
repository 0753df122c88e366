import { defined } from "@konverge/core";
import type { Advance } from "./advance.ts";
import type { AnyWorkflow, ParentClosePolicy } from "../define/define-workflow.ts";
import { BlockingError, type RunJournal } from "../journal/run-journal.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { CancelRequest, RunView } from "../store/run-record.ts";
import type { NewRun, RunActions } from "../store/run-actions.ts";
import type { Begun } from "../store/start-run.ts";

/** Starts, signals and cancels other runs for an execution, and wakes them. */
export interface ChildStarter {
  /**
   * Starts the run. Returns the existing run with its id if there is one.
   * @throws KonvergeError `run_exists`, `queue_full`
   */
  start(run: NewRun): Promise<RunView | Begun>;
  cancel(ref: RunRef, request: CancelRequest): Promise<void>;
  /** Ends the run without its undo, unless it has ended. */
  terminate(ref: RunRef, request: CancelRequest): Promise<void>;
  get(ref: RunRef): Promise<RunView | undefined>;
  signal: RunActions["signal"];
}

export interface AwaitedChild {
  readonly ref: RunRef;
  readonly workflow: AnyWorkflow;
  readonly input: unknown;
  readonly start: ChildStarter;
  readonly onParentClose: ParentClosePolicy;
}

/**
 * Starts a child, or reads its result. The child's id is made of the parent's and the step's, so that it starts once. Its end
 * is noted in the parent's journal and wakes the parent, which then calls this again. A child that is noted as active is not
 * asked for: a parent of many children would ask for all of them at each wake-up.
 */
export async function awaitChild(
  journal: RunJournal,
  key: string,
  { ref, workflow, input, start, onParentClose }: AwaitedChild,
): Promise<Advance> {
  const { held } = journal;
  if (onParentClose === "abandon") {
    const cancelled = await journal.throwCancel(key, "child");
    if (cancelled !== undefined) return cancelled;
  }
  const noted = journal.progressOf(key);
  if (noted?.childEnded === true) {
    // The child must not run again, even if it is no longer kept.
    const isKept = (await start.get(ref)) !== undefined;
    const cancelled = isKept ? undefined : await journal.throwCancel(key, "child");
    if (cancelled !== undefined) return cancelled;
    if (!isKept) throw new BlockingError(expiredReason(ref));
  }
  const isActive = noted !== undefined && noted.childEnded !== true;
  const parent = { workflow: held.workflow, id: held.id };
  const round = { step: key, ...defined({ round: held.run.round }) };
  const started = isActive
    ? undefined
    : await start.start({
        ...ref,
        version: workflow.version,
        input,
        parent: { ...parent, ...round },
      });
  const child = started !== undefined && "status" in started ? started : undefined;
  if (child?.parent !== undefined && !isSame(child.parent, parent)) {
    throw new BlockingError(foreignReason(ref, child.parent));
  }
  switch (child?.status) {
    case "done":
      return await journal.commit(key, { kind: "child", value: child.result, child: ref });
    case "failed":
    case "cancelled": {
      const cancelled = await journal.throwCancel(key, "child", { attempts: 0, child: ref });
      if (cancelled !== undefined) return cancelled;
      const message = child.error?.message ?? child.status;
      const error = {
        code: "child_failed",
        message: `run ${ref.id} is ${child.status}: ${message}`,
      };
      return await journal.commit(key, { kind: "child", error, child: ref });
    }
    case undefined:
    case "queued":
    case "running":
    case "waiting":
    case "blocked":
    case "pausing":
    case "paused":
    case "compensating":
      if (isCloseNoted(journal, key) || (journal.cancelPending && child?.cancel === undefined)) {
        const close = { child: ref, start, onParentClose, reason: "is cancelled" };
        await closeOnce(journal, key, { ...close, passesOn: true });
      }
      return { waitUntilMs: undefined, child: ref };
  }
}

function expiredReason({ workflow, id }: RunRef): string {
  return (
    `the child ${id} of "${workflow}" has ended and is no longer kept, so its result is unknown; ` +
    "cancel this run, or start a run with that id to run the child again"
  );
}

function foreignReason({ workflow, id }: RunRef, parent: RunRef): string {
  return (
    `run ${id} of "${workflow}" is a child of run ${parent.id} of "${parent.workflow}"; ` +
    "give this step another name, or start this run with another id"
  );
}

function isSame(one: RunRef, other: RunRef): boolean {
  return one.workflow === other.workflow && one.id === other.id;
}

/**
 * Cancels or terminates the child with its parent: once, since a child that has caught its cancellation cleans up. With `passesOn`,
 * once for each cancellation of the parent.
 */
export async function closeOnce(
  journal: RunJournal,
  key: string,
  {
    child,
    start,
    onParentClose,
    reason,
    passesOn = false,
  }: {
    child: RunRef;
    start: Pick<ChildStarter, "cancel" | "terminate">;
    onParentClose: ParentClosePolicy;
    reason: string;
    passesOn?: boolean;
  },
): Promise<void> {
  const { cancelCalls } = journal;
  const noted = journal.progressOf(noteOf(key));
  if (noted !== undefined && !(passesOn && noted.attempts < cancelCalls)) return;
  const request = { reason: `its parent ${journal.held.id} ${reason}` };
  await (onParentClose === "terminate"
    ? start.terminate(child, request)
    : start.cancel(child, request));
  await journal.note(noteOf(key), { attempts: cancelCalls, delayMs: 0 });
}

export function isCloseNoted(journal: RunJournal, key: string): boolean {
  return journal.progressOf(noteOf(key)) !== undefined;
}

function noteOf(key: string): string {
  return `${key}!cancel`;
}
