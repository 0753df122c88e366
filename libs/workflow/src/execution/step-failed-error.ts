import { ensureError, isKonvergeError, KonvergeError } from "@konverge/core";
import type { Failure } from "../store/run-record.ts";

const MAX_MESSAGE = 1_000;

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

/** Returns the stored part of an error: its scrubbed code and message, truncated. */
export function failureOf(
  thrown: unknown,
  scrub: (text: string) => string = (text) => text,
): Failure {
  const error = ensureError(thrown);
  const code = isKonvergeError(error) ? error.code : error.name;
  return { code: scrub(code), message: scrub(error.message).slice(0, MAX_MESSAGE) };
}
