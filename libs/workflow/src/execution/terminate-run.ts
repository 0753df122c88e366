import type { RunRef } from "../define/run-ref.ts";
import type { RunActions, Terminated } from "../store/run-actions.ts";
import type { CancelRequest } from "../store/run-record.ts";
import { wakeFollowers, type Waker } from "./wake-followers.ts";

/** Ends a run at once, without its undo, and wakes what continues. */
export async function terminateRun(
  { store, ...waker }: Waker & { readonly store: Pick<RunActions, "terminate"> },
  ref: RunRef,
  request: CancelRequest,
): Promise<Terminated["kind"]> {
  const ended = await store.terminate(ref, request);
  if (ended.kind !== "terminated") return ended.kind;
  // An execution at work ends its attempt; the next one removes the key.
  await waker.wake(ref, "terminate");
  await wakeFollowers(waker, ref, ended);
  return ended.kind;
}
