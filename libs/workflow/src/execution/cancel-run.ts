import type { RunRef } from "../define/run-ref.ts";
import { wakeFollowers, type Waker } from "./wake-followers.ts";
import type { RunActions } from "../store/run-actions.ts";
import type { RunQueries } from "../store/run-queries.ts";
import type { CancelRequest, RunView } from "../store/run-record.ts";

export interface Canceller extends Waker {
  readonly store: Pick<RunActions, "cancel" | "endQueued"> & Pick<RunQueries, "get">;
}

export interface Cancelled {
  readonly answer: Awaited<ReturnType<RunActions["cancel"]>>;
  /** The run when it was cancelled. */
  readonly run?: RunView;
}

/**
 * Requests the cancellation of a run. A run that is queued behind another one ends at once. A run that was cancelled before and
 * waits for the ends of its children passes the request to them in its next execution, because they may have caught the earlier one.
 */
export async function cancelRun(
  canceller: Canceller,
  ref: RunRef,
  request: CancelRequest,
  options: { readonly resumes?: boolean } = {},
): Promise<Cancelled> {
  const { store, wake } = canceller;
  const answer = await store.cancel(ref, request, options);
  if (answer === "ended" || answer === "missing") return { answer };
  // Read before the run resumes and ends.
  const run = await store.get(ref);
  if (run === undefined) return { answer };
  if (answer === "requested" && run.status === "queued") {
    const ended = await store.endQueued(ref, request);
    if (ended.kind === "terminated") await wakeFollowers(canceller, ref, ended);
  }
  const isPassedOn = answer === "pending" && run.waits?.some(({ child }) => child !== undefined);
  await wake(ref, "cancel");
  return { answer: isPassedOn === true ? "requested" : answer, run };
}
