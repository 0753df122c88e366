import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { KonvergeError, startLongTimer } from "@konverge/core";
import type { StepContext } from "../define/define-workflow.ts";
import { roundIdOf } from "../define/run-ref.ts";
import type { RunView } from "../store/run-record.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { Heartbeats } from "./heartbeats.ts";
import { StepTry } from "./step-try.ts";
import type { OpenVerbs } from "../verbs/create-step-verbs.ts";

/** Name of the step whose body is running. */
const bodies = new AsyncLocalStorage<string>();

/** @throws KonvergeError `invalid_workflow` in the body of a step */
export function assertOutsideOfBodies(name: string): void {
  const outer = bodies.getStore();
  if (outer === undefined) return;
  throw new KonvergeError(
    "invalid_workflow",
    `"${name}" is called in the body of step "${outer}"; call it after the step, or do the work in the step body`,
  );
}

/** Returns the name of the step whose body is running. */
export function runningBody(): string | undefined {
  return bodies.getStore();
}

/** Runs code of the user in which no verb may be called. */
export function runInBody<T>(name: string, work: () => T): T {
  return bodies.run(name, work);
}

/** Returns a key that is the same in every attempt of the step, and in no other step or round. */
export function idempotencyKeyOf(run: RunView, step: string): string {
  return createHash("sha256")
    .update(`${run.workflow}/${roundIdOf(run)}/${step}`)
    .digest("hex");
}

export interface BodyOptions {
  readonly step: string;
  readonly attempt: number;
  readonly run: RunView;
  readonly timeoutMs: number;
  /** Aborts the wait for the body. */
  readonly signal: AbortSignal;
  /** Returns what ends the wait for the end of an aborted body; undefined if it is not awaited. Default: it is not. */
  readonly awaitsEnd?: () => AbortSignal | undefined;
  /** Creates the verbs of this attempt; they end with the signal. */
  readonly openVerbs: (signal: AbortSignal) => OpenVerbs;
  readonly log: RunLog;
  readonly heartbeats: Heartbeats;
}

/** Longest wait for the end of a cancelled body, in ms: an undo must not run at the same time. */
const GRACE_MS = 5_000;

/**
 * Runs a step's body once, unless its signal is aborted already. After a timeout, a body that ignores its signal is abandoned;
 * after a cancellation, once it has ended, or after 5 s or its timeout.
 * @throws what the body throws; KonvergeError `timed_out`, `heartbeat_timeout`, `invalid_workflow`; the reason of `signal`
 */
export async function runBody<T>(
  body: (step: StepContext) => T | Promise<T>,
  options: BodyOptions,
): Promise<T> {
  const { run, step, attempt, timeoutMs, signal, openVerbs, log, heartbeats } = options;
  signal.throwIfAborted();
  const makeKey = () => idempotencyKeyOf(run, step);
  const tried = new StepTry({ step, attempt, makeKey, openVerbs, log, heartbeats });
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const end = (reason: Error) => {
    heartbeats.end();
    tried.end(() => reason);
    reject(reason);
  };
  const cancelTimer = startLongTimer(timeoutMs, () => {
    const message = `step "${step}" took longer than ${timeoutMs} ms; increase its timeout or split the step`;
    end(new KonvergeError("timed_out", message));
  });
  const stop = () => end(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  heartbeats.onEnd(end);
  const running = bodies.run(step, async () => await body(tried));
  try {
    const value = await Promise.race([aborted, running]);
    tried.assertVerbsEnded();
    return value;
  } catch (error) {
    const stopped = signal.aborted ? options.awaitsEnd?.() : undefined;
    if (stopped !== undefined) await endOf(running, Math.min(GRACE_MS, timeoutMs), stopped);
    throw error;
  } finally {
    cancelTimer();
    heartbeats.end();
    signal.removeEventListener("abort", stop);
    // An abandoned body must not write during the next attempt.
    tried.end(() => new KonvergeError("attempt_ended", `this attempt of step "${step}" has ended`));
  }
}

/** Resolves when the body has ended, after `ms`, or when `stopped` is aborted. */
async function endOf(running: Promise<unknown>, ms: number, stopped: AbortSignal): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  const cancelTimer = startLongTimer(ms, stop);
  stopped.addEventListener("abort", stop, { once: true });
  if (stopped.aborted) stop();
  await Promise.race([running.then(stop, stop), over]);
  cancelTimer();
  stopped.removeEventListener("abort", stop);
}
