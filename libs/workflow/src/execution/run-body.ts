import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { KonvergeError } from "@konverge/core";
import type { StepContext } from "../define/define-workflow.ts";
import type { RunRef } from "../define/run-ref.ts";
import { StepTry } from "./step-try.ts";
import type { OpenVerbs } from "../verbs/create-step-verbs.ts";

/** The step whose body is running. */
const bodies = new AsyncLocalStorage<string>();

/** @throws KonvergeError `invalid_workflow` in the body of a step */
export function assertOutsideOfBodies(name: string): void {
  const outer = bodies.getStore();
  if (outer === undefined) return;
  throw new KonvergeError(
    "invalid_workflow",
    `"${name}" is called in the body of step "${outer}": call it after that step, or do its work in the body`,
  );
}

/** The same in every try of the step, and in no other. */
export function idempotencyKeyOf({ workflow, id }: RunRef, step: string): string {
  return createHash("sha256").update(`${workflow}/${id}/${step}`).digest("hex");
}

export interface BodyOptions {
  readonly step: string;
  readonly attempt: number;
  readonly run: RunRef;
  readonly timeoutMs: number;
  /** Ends the wait for the body with its reason. */
  readonly signal: AbortSignal;
  /** Makes the verbs of this try; they end with the signal. */
  readonly openVerbs: (signal: AbortSignal) => OpenVerbs;
}

/**
 * One try of a step's body. A body that does not look at its signal is left behind when the time is over.
 * @throws what the body throws; KonvergeError `timed_out`, `invalid_workflow`; the reason of `signal`
 */
export async function runBody<T>(
  body: (step: StepContext) => T | Promise<T>,
  options: BodyOptions,
): Promise<T> {
  const { run, step, attempt, timeoutMs, signal, openVerbs } = options;
  const tried = new StepTry({ attempt, makeKey: () => idempotencyKeyOf(run, step), openVerbs });
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const end = (reason: Error) => {
    tried.end(() => reason);
    reject(reason);
  };
  const timer = setTimeout(() => {
    const message = `step "${step}" took longer than ${timeoutMs} ms; raise its timeout or do less in it`;
    end(new KonvergeError("timed_out", message));
  }, timeoutMs);
  const stop = () => end(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const value = await Promise.race([aborted, bodies.run(step, async () => await body(tried))]);
    tried.assertVerbsEnded();
    return value;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    // What the body has left behind must not write beside the next try.
    tried.end(() => new KonvergeError("attempt_ended", `this try of step "${step}" is over`));
  }
}
