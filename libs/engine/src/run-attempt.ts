import {
  KonvergeError,
  sleepMs,
  type ApiObject,
  type Ladder,
  type ObjectRef,
  type Outcome,
} from "@konverge/core";
import { isNotFound, type KubeClient, type MutateOptions } from "@konverge/kube";
import { AttemptCancelledError, type AttemptLease, type ObjectLanes } from "@konverge/queue";
import { createAttemptKube } from "./attempt-kube.ts";
import { createAttemptTrace, type AttemptTrace } from "./attempt-trace.ts";
import { classifyError } from "./classify-error.ts";
import { deepFreeze } from "./deep-freeze.ts";
import type {
  ConflictRetry,
  Controller,
  ReconcileContext,
  ReconcileResult,
} from "./define-controller.ts";
import { toMs } from "./duration.ts";
import type { Log } from "./log.ts";
import type { ObjectCache } from "./object-cache.ts";

/** How long a handler may take to notice that it was aborted before it is left behind. */
const ABORT_GRACE_MS = 2_000;

export interface RunAttemptOptions {
  readonly controller: Controller;
  readonly client: KubeClient;
  readonly cache: ObjectCache;
  readonly lanes: ObjectLanes;
  readonly conflictRetry: ConflictRetry;
  readonly log: Log;
}

export interface AttemptRun {
  readonly outcome: Outcome;
  readonly trace: AttemptTrace;
  /** The object as read at the start; undefined when it was gone or could not be read. */
  readonly object: ApiObject | undefined;
}

/**
 * Runs a controller's handler once: reads the object, calls the handler with access bound to this attempt, and says
 * what came of it. Never throws, and ends in bounded time even when the handler does not.
 */
export async function runAttempt(
  attempt: AttemptLease,
  options: RunAttemptOptions,
): Promise<AttemptRun> {
  const { controller } = options;
  const trace = createAttemptTrace();
  const timeout = new AbortController();
  const signal = AbortSignal.any([attempt.signal, timeout.signal]);
  const state: { open: boolean; object: ApiObject | undefined } = { open: true, object: undefined };
  const timer = setTimeout(() => {
    timeout.abort(
      new KonvergeError(
        "timed_out",
        `controller "${controller.name}" ran longer than ${controller.timeoutMs} ms`,
      ),
    );
  }, controller.timeoutMs);
  try {
    const running = runHandler(attempt, options, { trace, signal, state });
    const outcome = await Promise.race([running, leftBehind(signal, attempt, timeout.signal)]);
    return { outcome: afterwards(outcome, trace, options.log), trace, object: state.object };
  } finally {
    clearTimeout(timer);
    state.open = false;
  }
}

interface Running {
  readonly trace: AttemptTrace;
  readonly signal: AbortSignal;
  readonly state: { open: boolean; object: ApiObject | undefined };
}

async function runHandler(
  attempt: AttemptLease,
  { controller, client, cache, lanes, conflictRetry, log }: RunAttemptOptions,
  { trace, signal, state }: Running,
): Promise<Outcome> {
  const { key } = attempt;
  const target =
    key.namespace === undefined ? { name: key.name } : { namespace: key.namespace, name: key.name };
  const ref: ObjectRef = { ...controller.for, ...target };
  const scoped = client.scoped({
    signal,
    priority: attempt.class,
    isRunning: () => trace.calls.n > 0,
    observe: trace.noteCall,
    onConflict: trace.noteConflict,
    fieldManager: `konverge/${controller.name}`,
  });
  try {
    const object = await scoped
      .get(
        controller.for,
        target,
        attempt.floor === undefined ? {} : { resourceVersion: attempt.floor },
      )
      .catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
    if (object === undefined) return { kind: "gone" };
    state.object = deepFreeze(object);
    const context: ReconcileContext = {
      key,
      triggers: attempt.triggers,
      object,
      kube: createAttemptKube({
        client: scoped,
        cache,
        lanes,
        signal,
        trace,
        namespace: key.namespace,
        retry: mutateRetry(conflictRetry),
        assertOpen: () => {
          if (!state.open) {
            throw new KonvergeError(
              "attempt_revoked",
              "the attempt has ended; await every call before the handler returns",
            );
          }
        },
      }),
      log,
      signal,
      attempt: attempt.attempt,
      requeueAfter: (after) => ({ kind: "requeueAfter", afterMs: toMs(after, "requeueAfter") }),
      awaitChange: () => ({ kind: "awaitChange" }),
    };
    return toOutcome(await controller.reconcile(context));
  } catch (error) {
    if (signal.aborted) return abortOutcome(attempt, signal, error);
    return classifyError(error, ref);
  }
}

function toOutcome(result: ReconcileResult | void): Outcome {
  return result === undefined ? { kind: "done" } : result;
}

/** Settles some time after the abort, so that a handler which ignores its signal cannot hold the key for ever. */
async function leftBehind(
  signal: AbortSignal,
  attempt: AttemptLease,
  timeout: AbortSignal,
): Promise<Outcome> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await sleepMs(ABORT_GRACE_MS);
  return abortOutcome(attempt, timeout, signal.reason);
}

function abortOutcome(attempt: AttemptLease, timeout: AbortSignal, error: unknown): Outcome {
  const reason: unknown = attempt.signal.aborted ? attempt.signal.reason : timeout.reason;
  // A handler over its time is a failure of the handler: it must not run again without backoff.
  if (!attempt.signal.aborted && reason instanceof KonvergeError && reason.code === "timed_out") {
    return { kind: "retry", error: reason };
  }
  const cause = reason instanceof AttemptCancelledError ? reason.reason : "shutdown";
  return { kind: "cancelled", cause, ...(error instanceof Error ? { error } : {}) };
}

/** A deferral wins over whatever the handler made of it; a conflict that it swallowed is said aloud. */
function afterwards(outcome: Outcome, trace: AttemptTrace, log: Log): Outcome {
  const { deferred } = trace;
  if (deferred !== undefined && outcome.kind !== "cancelled" && outcome.kind !== "deferred") {
    return { kind: "deferred", afterMs: deferred.retryAfterMs ?? 1_000, cause: deferred.message };
  }
  const swallowed = trace.conflicts.find(({ foundVersion }) => foundVersion === undefined);
  if (swallowed !== undefined && outcome.kind !== "conflict" && outcome.kind !== "cancelled") {
    log.warn(
      { outcome: outcome.kind, object: swallowed.ref.name, readVersion: swallowed.readVersion },
      "the handler swallowed a conflict; let it pass, so that the key is tried again",
    );
  }
  return outcome;
}

/** Never gives up, but yields to the attempt's timeout. */
const INLINE: Ladder = {
  baseMs: 10,
  factor: 2,
  capMs: 1_000,
  steps: Infinity,
  jitter: { kind: "full" },
};

function mutateRetry(mode: ConflictRetry): MutateOptions["retry"] {
  switch (mode) {
    case "job":
      return "none";
    case "inline":
      return INLINE;
    case "both":
      return undefined;
  }
}
