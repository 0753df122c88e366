import { ensureError, framesOf, isKonvergeError, KonvergeError, typeOfError } from "@konverge/core";
import type { Failure } from "../store/run-record.ts";

const MAX_MESSAGE = 1_000;
const MAX_FRAMES = 20;

/** Thrown when a step or child ended without a result. The same in every execution, so the function may catch it. */
export class StepFailedError extends KonvergeError {
  override readonly name = "StepFailedError";
  readonly step: string;
  readonly failure: Failure;

  constructor(step: string, failure: Failure) {
    super("step_failed", `step "${step}" failed: ${failure.message}`);
    this.step = step;
    this.failure = failure;
  }
}

/** Returns the error that the verb throws for a recorded failure. */
export function errorOf(step: string, failure: Failure): KonvergeError {
  return failure.code === "cancelled"
    ? new KonvergeError("cancelled", failure.message)
    : new StepFailedError(step, failure);
}

/** Returns the stored part of an error: its scrubbed code, message and frames, truncated. */
export function failureOf(
  thrown: unknown,
  scrub: (text: string) => string = (text) => text,
): Failure {
  const error = ensureError(thrown);
  const code = isKonvergeError(error) ? error.code : typeOfError(error);
  const messageOf = ({ message }: Error) => scrub(String(message));
  const frames = framesOf(error, { messageOf }).map(scrub);
  // The error of a step is thrown again in each execution; its own frames are those of the function.
  const cause = error instanceof StepFailedError ? error.failure : undefined;
  if (cause?.frames !== undefined) frames.push(`caused by ${cause.code}`, ...cause.frames);
  return {
    code: scrub(code),
    message: scrub(error.message).slice(0, MAX_MESSAGE),
    ...(frames.length === 0 ? {} : { frames: frames.slice(0, MAX_FRAMES) }),
  };
}
