import { framesOf, KonvergeError, sleepMs, type ApiObject, type Outcome } from "@konverge/core";
import { AttemptCancelledError } from "@konverge/queue";
import { createAttemptTrace, type AttemptTrace } from "../access/attempt-trace.ts";
import type { Attempt } from "../access/attempt.ts";
import { deferralOf } from "./classify-error.ts";
import type { LoopWatch } from "./loop-watch.ts";
import { redactError } from "./redact-error.ts";
import { runHandler } from "./run-handler.ts";
import { inAttempt } from "./stray-errors.ts";

/** Time that an aborted handler has to return before the attempt ends without it, in ms. */
const ABORT_GRACE_MS = 2_000;

export interface AttemptRun {
  readonly outcome: Outcome;
  readonly trace: AttemptTrace;
  /** The object as read at the start; undefined if it does not exist or could not be read. */
  readonly object: ApiObject | undefined;
  /** True if its writes were dry runs, because the controller observes. */
  readonly isPlan?: true;
  /** Where the error of the outcome was thrown, as lines of code. */
  readonly frames?: readonly string[];
  /** Time during which the event loop of this process was blocked, in ms. */
  readonly eventLoopBlockedMs?: number;
}

/** Returns an attempt that has only an outcome: its handler has not run, or has only planned. */
export function endedRun(outcome: Outcome): AttemptRun {
  return { outcome, trace: createAttemptTrace(), object: undefined };
}

/**
 * Runs a controller's handler once: reads the object, calls the handler with access bound to this attempt, and returns the
 * result. Never throws, and ends in bounded time even if the handler does not.
 */
export async function runAttempt(attempt: Attempt, loop: LoopWatch): Promise<AttemptRun> {
  const { lease, signal, trace } = attempt;
  const redact = redactionOf(attempt);
  const watched = loop.began(lease.key);
  const timer = startTimeout(attempt);
  try {
    const running = inAttempt({ key: lease.key, redact }, () => runHandler(attempt));
    const ending = running.then((outcome) =>
      signal.aborted ? abortOutcome(attempt, outcome) : outcome,
    );
    const outcome = await Promise.race([ending, leftBehind(attempt)]);
    const eventLoopBlockedMs = Math.round(watched.ended());
    return {
      outcome: withSafeError(afterwards(outcome, trace), redact),
      trace,
      object: attempt.object,
      ...frameFields(outcome, trace),
      ...(eventLoopBlockedMs > 0 ? { eventLoopBlockedMs } : {}),
    };
  } finally {
    clearTimeout(timer);
    attempt.end();
  }
}

function startTimeout(attempt: Attempt): NodeJS.Timeout {
  const { name, timeoutMs } = attempt.runtime.controller;
  return setTimeout(() => {
    attempt.abort(
      new KonvergeError(
        "timed_out",
        `controller "${name}" exceeded its timeout of ${timeoutMs} ms; pass ctx.signal to pending calls, or increase timeout`,
      ),
    );
  }, timeoutMs);
}

function redactionOf({ runtime: { client, controller }, trace }: Attempt): (error: Error) => Error {
  const sensitiveKind = client.isSensitive(controller.for) ? controller.for.kind : undefined;
  return (error) =>
    redactError(error, {
      secrets: trace.secrets,
      sensitiveKind,
      isSensitive: (type) => client.isSensitive(type),
    });
}

/** Settles some time after the abort, so that a handler that ignores its signal cannot hold the key forever. */
async function leftBehind(attempt: Attempt): Promise<Outcome> {
  const { signal } = attempt;
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  // After a regular end the result is unused, and a timer per attempt would keep the process alive.
  if (!attempt.hasEnded) await sleepMs(ABORT_GRACE_MS);
  return abortOutcome(attempt, undefined);
}

/** `ending`: the result of the aborted handler. If it finished its work nevertheless, that result counts. */
function abortOutcome({ lease, signal }: Attempt, ending: Outcome | undefined): Outcome {
  if (ending !== undefined && !("error" in ending)) return ending;
  const reason: unknown = signal.reason;
  // A timeout is a failure of the handler: it must not run again without backoff.
  if (!lease.signal.aborted && reason instanceof KonvergeError && reason.code === "timed_out") {
    return { kind: "retry", error: reason };
  }
  const cause = reason instanceof AttemptCancelledError ? reason.reason : "shutdown";
  return {
    kind: "cancelled",
    cause,
    ...(ending?.error === undefined ? {} : { error: ending.error }),
  };
}

function withSafeError(outcome: Outcome, redact: (error: Error) => Error): Outcome {
  if (!("error" in outcome) || outcome.error === undefined) return outcome;
  return { ...outcome, error: redact(outcome.error) };
}

/**
 * Returns the frames of the error, without frames for a conflict, because the code is not its cause. Function names may be
 * computed from values, so they are scrubbed too.
 */
function frameFields(outcome: Outcome, { secrets }: AttemptTrace): Pick<AttemptRun, "frames"> {
  if (!("error" in outcome) || outcome.error === undefined || outcome.kind === "conflict")
    return {};
  const frames = framesOf(outcome.error).map((line) => secrets.scrub(line));
  return frames.length === 0 ? {} : { frames };
}

/** A deferral takes precedence over the result of the handler. */
function afterwards(outcome: Outcome, { deferred }: AttemptTrace): Outcome {
  if (deferred === undefined || outcome.kind === "cancelled" || outcome.kind === "deferred") {
    return outcome;
  }
  return deferralOf(deferred);
}
