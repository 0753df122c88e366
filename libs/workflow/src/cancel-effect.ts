import { isEndStatus, type RunView } from "./store/run-record.ts";

/** Whether a request to cancel a run has an effect. */
export interface CancelEffect {
  /** `none`: nothing was changed. `delayed`: the run is cancelled once it is no longer blocked. */
  readonly effect: "requested" | "delayed" | "none";
  /** Why it has no effect yet, with a suggested fix. */
  readonly note?: string;
}

const FIX = "terminate the run to end it now, without undo";

/** Returns the effect of a request that was stored, or of one that changed nothing. */
export function cancelEffectOf(
  answer: "requested" | "pending" | "compensating",
  run: Pick<RunView, "status" | "cancel" | "pause" | "blockedReason"> | undefined,
): CancelEffect {
  if (answer === "compensating") {
    if (run?.pause !== undefined) {
      return { effect: "none", note: "the run is paused while it undoes its steps; resume it" };
    }
    return { effect: "none", note: `the run already undoes its steps; ${FIX}` };
  }
  if (run?.status === "blocked") {
    const note = `the run is blocked and is cancelled when it resumes; ${FIX}`;
    return { effect: answer === "pending" ? "none" : "delayed", note };
  }
  if (answer === "requested" || run === undefined || isEndStatus(run.status)) {
    return { effect: "requested" };
  }
  const by = run.cancel?.by === undefined ? "" : ` by ${run.cancel.by}`;
  const note = `a cancellation${by} is already requested and takes effect at the next call on w; ${FIX}`;
  return { effect: "none", note };
}
