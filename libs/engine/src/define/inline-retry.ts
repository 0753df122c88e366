import type { BackoffPolicy } from "@konverge/core";
import { INLINE_BACKOFF } from "./backoff.ts";
import type { ConflictRetry } from "./controller-options.ts";

/** Retries of a given policy before the retries of the job. */
const STEPS_BEFORE_JOB = 7;

/** Returns the retries of a conflict inside the handler. Undefined: those of the client. */
export function inlineRetry(
  mode: ConflictRetry,
  inline: Partial<BackoffPolicy> | undefined,
): BackoffPolicy | "none" | undefined {
  switch (mode) {
    case "job":
      return "none";
    case "inline":
      return { ...INLINE_BACKOFF, ...inline };
    case "both":
      return inline === undefined
        ? undefined
        : { ...INLINE_BACKOFF, steps: STEPS_BEFORE_JOB, ...inline };
  }
}
