import type { PauseAnswer } from "./store/scripts/pause-runs.ts";
import type { ResumeAnswer } from "./store/scripts/resume-runs.ts";

/** Whether a request to pause or resume a run has an effect. */
export interface PauseEffect {
  /** `pausing`: a worker still executes the run. `none`: nothing was changed. */
  readonly effect: "paused" | "pausing" | "resumed" | "none";
  /** Why it has no effect yet, with a suggested fix. */
  readonly note?: string;
}

const NOTES: Readonly<Record<"pause" | "resume", string>> = {
  pause: "the run is already paused",
  resume: "the run is not paused",
};

/** Returns the effect of a request on a run that has not ended. */
export function pauseEffectOf(
  action: "pause" | "resume",
  answer: Exclude<PauseAnswer | ResumeAnswer, "ended" | "missing">,
): PauseEffect {
  switch (answer) {
    case "pausing": {
      const note = "a worker executes the run; running bodies end, and then the run is paused";
      return { effect: answer, note };
    }
    case "paused":
    case "resumed":
      return { effect: answer };
    case "unchanged":
    case "changed":
      return { effect: "none", note: NOTES[action] };
  }
}
