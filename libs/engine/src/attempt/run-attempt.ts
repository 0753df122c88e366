import { KonvergeError, sleepMs, type ApiObject, type Outcome } from "@konverge/core";
import { AttemptCancelledError, type AttemptLease } from "@konverge/queue";
import { createAttemptTrace, type AttemptTrace } from "../access/attempt-trace.ts";
import type { LoopWatch } from "./loop-watch.ts";
import { redactError } from "./redact-error.ts";
import { runHandler, type RunHandlerOptions } from "./run-handler.ts";
import { inAttempt } from "./stray-errors.ts";

/** How long a handler may take to notice that it was aborted before it is left behind. */
const ABORT_GRACE_MS = 2_000;
/** One for all: to make an error with its stack for each attempt would cost more than the attempt needs. */
const ENDED = new KonvergeError("attempt_ended", "the attempt has ended");

export interface AttemptRun {
  readonly outcome: Outcome;
  readonly trace: AttemptTrace;
  /** The object as read at the start; undefined when it was gone or could not be read. */
  readonly object: ApiObject | undefined;
  /** How long this process's event loop stood still meanwhile, in ms. */
  readonly blockedMs?: number;
}

export interface RunAttemptOptions extends RunHandlerOptions {
  readonly loop: LoopWatch;
}

/**
 * Runs a controller's handler once: reads the object, calls the handler with access bound to this attempt, and says
 * what came of it. Never throws, and ends in bounded time even when the handler does not.
 */
export async function runAttempt(
  attempt: AttemptLease,
  options: RunAttemptOptions,
): Promise<AttemptRun> {
  const { controller, client } = options;
  const trace = createAttemptTrace(options.span);
  const sensitiveKind = client.isSensitive(controller.for) ? controller.for.kind : undefined;
  const redact = (error: Error) =>
    redactError(error, {
      secrets: trace.secrets,
      sensitiveKind,
      isSensitive: (type) => client.isSensitive(type),
    });
  const watched = options.loop.began(attempt.key);
  const ended = new AbortController();
  const signal = AbortSignal.any([attempt.signal, ended.signal]);
  const state: { open: boolean; object: ApiObject | undefined } = { open: true, object: undefined };
  const timer = setTimeout(() => {
    ended.abort(
      new KonvergeError(
        "timed_out",
        `controller "${controller.name}" ran longer than ${controller.timeoutMs} ms; give its signal to what it waits for, or raise timeout`,
      ),
    );
  }, controller.timeoutMs);
  try {
    const running = inAttempt({ key: attempt.key, redact }, () =>
      runHandler(attempt, options, { trace, signal, state }),
    );
    const ending = running.then((outcome) =>
      signal.aborted ? abortOutcome(attempt, signal, outcome) : outcome,
    );
    const outcome = await Promise.race([ending, leftBehind(attempt, signal)]);
    const blockedMs = Math.round(watched.ended());
    return {
      outcome: withSafeError(afterwards(outcome, trace), redact),
      trace,
      object: state.object,
      ...(blockedMs > 0 ? { blockedMs } : {}),
    };
  } finally {
    clearTimeout(timer);
    state.open = false;
    // Whatever the handler left running ends with its attempt: a write from now on would be a zombie's (P8).
    if (!signal.aborted) ended.abort(ENDED);
  }
}

/** Settles some time after the abort, so that a handler which ignores its signal cannot hold the key for ever. */
async function leftBehind(attempt: AttemptLease, signal: AbortSignal): Promise<Outcome> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  // The handler has ended: nobody waits for this, and a timer for each attempt would hold the process.
  if (signal.reason !== ENDED) await sleepMs(ABORT_GRACE_MS);
  return abortOutcome(attempt, signal, undefined);
}

/** `ending`: what an aborted handler came to in the end. One that finished its work all the same has finished it. */
function abortOutcome(
  attempt: AttemptLease,
  signal: AbortSignal,
  ending: Outcome | undefined,
): Outcome {
  if (ending !== undefined && !("error" in ending)) return ending;
  const reason: unknown = signal.reason;
  // A handler over its time is a failure of the handler: it must not run again without backoff.
  if (!attempt.signal.aborted && reason instanceof KonvergeError && reason.code === "timed_out") {
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

/** A deferral wins over whatever the handler made of it. */
function afterwards(outcome: Outcome, { deferred }: AttemptTrace): Outcome {
  if (deferred === undefined || outcome.kind === "cancelled" || outcome.kind === "deferred") {
    return outcome;
  }
  return { kind: "deferred", afterMs: deferred.retryAfterMs ?? 1_000, cause: deferred.message };
}
