import type { QueueWorker } from "@konverge/queue";
import type { Log } from "../define/log.ts";

const RESUME_SPREAD_MS = 500;

/** Reports whether work may start. Calls the listener at once or later, and after each change. */
type FollowOpen = (listener: (isOpen: boolean) => void) => () => void;

/** The conditions under which a process takes work. */
export interface WorkConditions {
  /** The API server may be called; taking jobs would only return them otherwise. */
  readonly onWorkable?: FollowOpen | undefined;
  /** Redis was not restored, or an operator has accepted its work. */
  readonly onAccepted?: FollowOpen | undefined;
  /** Called before the workers follow a change of `onWorkable`. */
  readonly onChange?: (isWorkable: boolean) => void;
}

/** Leaves jobs in the queue unless all conditions hold. Returns the function that ends it. */
export function followWorkable(
  workers: readonly QueueWorker[],
  { onWorkable, onAccepted, onChange }: WorkConditions,
  log: Log,
): () => void {
  const state = { isWorkable: true, isAccepted: true };
  let isPaused = false;
  let resuming: ReturnType<typeof setTimeout> | undefined;
  const apply = () => {
    clearTimeout(resuming);
    const isOpen = state.isWorkable && state.isAccepted;
    if (!isOpen) {
      for (const worker of workers) worker.pause();
      isPaused = true;
      return;
    }
    if (!isPaused) return;
    // Spread, so that the processes do not resume at the same time.
    resuming = setTimeout(() => {
      isPaused = false;
      for (const worker of workers) worker.resume();
      log.info({}, "work resumed");
    }, Math.random() * RESUME_SPREAD_MS);
  };
  const ends = [
    onWorkable?.((isWorkable) => {
      if (!isWorkable) log.info({}, "work paused, API server unavailable");
      state.isWorkable = isWorkable;
      onChange?.(isWorkable);
      apply();
    }),
    onAccepted?.((isAccepted) => {
      if (!isAccepted) log.info({}, "work paused, restored Redis not accepted");
      state.isAccepted = isAccepted;
      apply();
    }),
  ];
  return () => {
    clearTimeout(resuming);
    for (const end of ends) end?.();
  };
}
