import {
  defined,
  nextDelay,
  ensureError,
  failureBackoff,
  findCause,
  toMs,
  type BackoffPolicy,
} from "@konverge/core";
import type { Advance } from "./advance.ts";
import type { StepContext, StepOptions } from "../define/define-workflow.ts";
import { runBody } from "./run-body.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { FencedError } from "../store/run-journal-store.ts";
import type { StepRecord } from "../store/run-record.ts";
import { failureOf } from "./step-failed-error.ts";
import { stepFaultOf } from "./step-fault.ts";
import { createStepVerbs } from "../verbs/create-step-verbs.ts";

const DEFAULT_ATTEMPTS = 5;
const DEFAULT_TIMEOUT = "5m";
/** Waits up to this are spent in place, in ms; longer ones hold no worker. */
const MAX_WAIT_IN_PLACE_MS = 2_000;

/** An undo could not do its work. */
export class UndoFailedError extends Error {
  override readonly name = "UndoFailedError";
}

/**
 * Runs a step's body until it has a result or its tries are used up; tries that failed are counted in the store. An undo
 * cannot be cancelled, and has no end but success.
 * @throws UndoFailedError when the tries of an undo are used up
 */
export async function runStep(
  journal: RunJournal,
  key: string,
  kind: "step" | "undo",
  body: (step: StepContext) => unknown,
  options: Pick<StepOptions<never>, "retry" | "timeout" | "unsafe">,
): Promise<Advance> {
  // It speaks of the body alone: what takes it back is repeated as any other.
  const isUnsafe = kind === "step" && options.unsafe === true;
  const { attempts = isUnsafe ? 1 : DEFAULT_ATTEMPTS, policy = failureBackoff } =
    options.retry ?? {};
  const timeoutMs = toMs(options.timeout ?? DEFAULT_TIMEOUT, `the timeout of step "${key}"`);
  // Once the cancellation was thrown, what the function still does is cleaning up.
  const signal =
    kind === "undo" || journal.cancelThrown ? journal.stopped : journal.stoppedOrCancelled();
  const noted = journal.progressOf(key);
  let tries = noted?.attempts ?? 0;
  let uncounted = noted?.uncounted ?? 0;
  let waitUntilMs = noted?.untilMs ?? 0;

  for (;;) {
    if (kind === "step") {
      // Whoever died in this run may have begun the body.
      const begun = tries + (journal.held.died ? 1 : 0);
      const cancelled = await journal.throwCancel(key, kind, { attempts: begun });
      if (cancelled !== undefined) return cancelled;
    }
    const leftMs = waitUntilMs - journal.nowMs();
    if (leftMs > MAX_WAIT_IN_PLACE_MS) {
      const { message } = journal.progressOf(key) ?? {};
      return { waitUntilMs, ...defined({ message }) };
    }
    if (leftMs > 0) await journal.pause(leftMs, signal);
    if (journal.stopped.aborted) throw journal.stopped.reason;
    if (leftMs > 0) continue;

    if (isUnsafe) {
      if (tries >= attempts) return await journal.commit(key, unknownOutcome(key, tries));
      await journal.note(key, { attempts: tries + 1, delayMs: 0 });
    }
    tries += 1;
    let value: unknown;
    let scrub = (text: string): string => text;
    try {
      journal.beforeBody(key);
      value = await runBody(body, {
        run: journal.held,
        step: key,
        attempt: tries,
        timeoutMs,
        signal,
        openVerbs(over) {
          const open = createStepVerbs(journal, key, over);
          ({ scrub } = open);
          return open;
        },
      });
      journal.assertFits(key, { kind, value });
    } catch (thrown) {
      const error = ensureError(thrown);
      if (journal.stopped.aborted) throw error;
      const fenced = findCause(error, isFenced);
      if (fenced !== undefined) throw fenced;
      if (kind === "step" && journal.cancelPending) continue;
      const fault = stepFaultOf(error);
      const failure = failureOf(error, scrub);
      const { message } = failure;
      if (fault.kind === "uncounted" && !isUnsafe) {
        tries -= 1;
        uncounted += 1;
        // Nothing ends these tries, so none may come at once: half of the delay is sure.
        const random = () => (1 + journal.random()) / 2;
        const delayMs = delayBefore(uncounted, policy, fault.retryAfterMs, random);
        ({ untilMs: waitUntilMs } = await journal.note(key, {
          attempts: tries,
          delayMs,
          uncounted,
          message,
        }));
        continue;
      }
      uncounted = 0;
      if (tries >= attempts || fault.kind === "final") {
        if (kind === "undo") throw new UndoFailedError(message);
        return await journal.commit(key, { kind, error: failure, attempts: tries });
      }
      const delayMs = delayBefore(tries, policy, fault.retryAfterMs, journal.random);
      ({ untilMs: waitUntilMs } = await journal.note(key, { attempts: tries, delayMs, message }));
      continue;
    }
    return await journal.commit(key, { kind, value, attempts: tries });
  }
}

function unknownOutcome(step: string, attempts: number): StepRecord {
  const message = `a worker was lost in the body of step "${step}", which is unsafe: whether it had its effect is not known, and it is not repeated`;
  return { kind: "step", error: { code: "outcome_unknown", message }, attempts };
}

function isFenced(error: unknown): error is FencedError {
  return error instanceof FencedError;
}

function delayBefore(
  tries: number,
  policy: BackoffPolicy,
  retryAfterMs: number,
  random: () => number,
): number {
  const next = nextDelay({ ...policy, steps: Infinity }, tries - 1, random);
  const delayMs = next.kind === "wait" ? next.afterMs : policy.capMs;
  return Math.max(delayMs, retryAfterMs);
}
