import type { RunRef } from "../define/run-ref.ts";
import type { Followers } from "../store/run-journal-store.ts";

export interface Waker {
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
  /** Requests a controller's key because a run has ended. */
  readonly notify: (key: string, run: RunRef) => Promise<void>;
}

/** Requests what continues when a run has ended. */
export async function wakeFollowers(
  waker: Waker,
  ref: RunRef,
  { parent, next, notify, slotTo = [] }: Followers,
): Promise<void> {
  if (parent !== undefined) await waker.wake(parent, "a child has ended");
  if (next !== undefined) await waker.wake(next, "the run before has ended");
  await Promise.all(slotTo.map((run) => waker.wake(run, "a slot is free")));
  if (notify !== undefined) await waker.notify(notify, ref);
}
