import {
  defined,
  nextDelay,
  ensureError,
  failureBackoff,
  findCause,
  KonvergeError,
  sleepMs,
  toMs,
  type BackoffPolicy,
} from "@konverge/core";
import { convertApiException } from "@konverge/kube";
import type { Advance } from "./advance.ts";
import { StepPermits } from "./step-permits.ts";
import type { RetryOptions, StepOptions } from "../define/define-workflow.ts";
import { Heartbeats } from "./heartbeats.ts";
import { runBody, type BodyOptions } from "./run-body.ts";
import { runningBranch } from "../journal/branch.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { StepBody } from "../journal/run-journal-options.ts";
import { FencedError } from "../store/run-journal-store.ts";
import {
  withFailedTry,
  type Failure,
  type Heartbeat,
  type StepRecord,
} from "../store/run-record.ts";
import { failureOf } from "./step-failed-error.ts";
import { isRefused, stepFaultOf } from "./step-fault.ts";
import { createStepVerbs, type OpenVerbs } from "../verbs/create-step-verbs.ts";
import { EffectWatch } from "../verbs/effect-watch.ts";

const DEFAULT_ATTEMPTS = 5;
const DEFAULT_TIMEOUT_MS = 300_000;
/** Longest time in which a stopping worker releases an attempt, in ms. */
const RELEASE_MS = 1_000;
/** Longest wait in place, in ms; longer ones occupy no worker. */
const MAX_WAIT_IN_PLACE_MS = 2_000;

/** Thrown when the attempts of an undo are used up. */
export class UndoFailedError extends Error {
  override readonly name = "UndoFailedError";
}

interface Options extends Pick<
  StepOptions<never>,
  "retry" | "timeout" | "heartbeatTimeout" | "unsafe" | "limit"
> {
  /** True once the function has ended: no further attempt begins. Default: never. */
  readonly isOver?: () => boolean;
  /** Asked before each attempt, with its permit; after false, the step waits. Default: each may begin. */
  readonly mayBegin?: () => Promise<boolean>;
}

/**
 * Runs a step's body until it has a result or its attempts are used up; failed attempts are counted in the store. An undo
 * cannot be cancelled, and ends only with success.
 * @throws UndoFailedError when the attempts of an undo are used up
 */
export async function runStep(
  journal: RunJournal,
  key: string,
  kind: "step" | "undo",
  body: StepBody,
  options: Options,
): Promise<Advance> {
  return await new StepRun(journal, key, kind, body, options).run();
}

class StepRun {
  readonly #journal: RunJournal;
  readonly #key: string;
  readonly #kind: "step" | "undo";
  readonly #body: StepBody;
  readonly #isUnsafe: boolean;
  readonly #maxAttempts: number;
  readonly #policy: BackoffPolicy;
  readonly #timeoutMs: number;
  readonly #heartbeatTimeoutMs: number | undefined;
  /** Aborted when this execution must stop, or when the run is cancelled. */
  readonly #ending: AbortSignal;
  /** Also aborted when the branch of the step has lost its race. */
  readonly #signal: AbortSignal;
  readonly #branch = runningBranch();
  readonly #isOver: () => boolean;
  readonly #mayBegin: Options["mayBegin"];
  readonly #permits: StepPermits | undefined;
  #attempts: number;
  #uncounted: number;
  #waitUntilMs: number;
  /** True if one of the attempts may have had an effect. */
  #mayHaveActed: boolean;

  constructor(
    journal: RunJournal,
    key: string,
    kind: "step" | "undo",
    body: StepBody,
    options: Options,
  ) {
    this.#journal = journal;
    this.#key = key;
    this.#kind = kind;
    this.#body = body;
    // `unsafe` applies to the body only; an undo is always repeated.
    this.#isUnsafe = kind === "step" && options.unsafe === true;
    const { retry = {} } = options;
    this.#maxAttempts = retry.attempts ?? (this.#isUnsafe ? 1 : DEFAULT_ATTEMPTS);
    this.#policy = policyOf(key, retry);
    this.#timeoutMs =
      options.timeout === undefined
        ? DEFAULT_TIMEOUT_MS
        : toMs(options.timeout, `the timeout of step "${key}"`);
    this.#heartbeatTimeoutMs =
      options.heartbeatTimeout === undefined ? undefined : toMs(options.heartbeatTimeout, "");
    this.#ending = kind === "undo" ? journal.stopped : journal.stoppedOrCancelled();
    const branch = this.#branch?.signal;
    this.#signal = branch === undefined ? this.#ending : AbortSignal.any([this.#ending, branch]);
    this.#isOver = options.isOver ?? (() => false);
    this.#mayBegin = options.mayBegin;
    this.#permits = StepPermits.of(journal, key, options.limit);
    const noted = journal.progressOf(key);
    this.#attempts = noted?.attempts ?? 0;
    this.#uncounted = noted?.uncounted ?? 0;
    this.#waitUntilMs = noted?.untilMs ?? 0;
    // A lost execution may have run the body.
    this.#mayHaveActed = noted?.mayHaveActed === true || journal.held.died;
  }

  async run(): Promise<Advance> {
    const journal = this.#journal;
    const lost = await this.#countLost();
    if (lost !== undefined) return lost;
    for (;;) {
      if (this.#branch?.hasLost === true) {
        this.#leaveLineWithBranch();
        return { waitUntilMs: undefined };
      }
      const cancelled = await this.#throwCancel();
      if (cancelled !== undefined) {
        this.#permits?.leave();
        return cancelled;
      }
      const waitUntilMs = this.#waitUntilMs;
      const leftMs = waitUntilMs - journal.nowMs();
      if (leftMs > MAX_WAIT_IN_PLACE_MS || this.#isOver() || journal.isPausing) {
        const { message } = journal.progressOf(this.#key) ?? {};
        return { waitUntilMs, ...defined({ message }) };
      }
      if (leftMs > 0) await journal.pause(leftMs, this.#signal);
      if (journal.stopped.aborted) throw journal.stopped.reason;
      if (leftMs > 0) continue;
      const unready = await this.#permits?.take(MAX_WAIT_IN_PLACE_MS, this.#signal);
      if (unready === "aborted") continue;
      if (unready !== undefined) {
        if (this.#permits !== undefined) journal.places.set(this.#key, this.#permits);
        this.#leaveLineWithBranch();
        return unready;
      }
      journal.places.delete(this.#key);
      const ended = await this.#begin().finally(() => this.#permits?.release());
      if (ended !== undefined) return ended;
    }
  }

  /** A step of a closed branch asks for no permit again, so its place in the queue would delay the others. */
  #leaveLineWithBranch(): void {
    const signal = this.#branch?.signal;
    const leave = () => this.#permits?.leave();
    if (signal?.aborted === true) leave();
    else signal?.addEventListener("abort", leave, { once: true });
  }

  /** True if the cancellation has aborted the body. Another verb may have thrown it first. */
  get #isCancelled(): boolean {
    return this.#ending.aborted && !this.#journal.stopped.aborted;
  }

  async #throwCancel(): Promise<StepRecord | undefined> {
    if (this.#kind === "undo") return undefined;
    // A lost execution of this run may have begun the body.
    const counted = this.#attempts + (this.#journal.held.died ? 1 : 0);
    // Uncounted attempts may have acted, too: the step is then undone.
    const attempts = Math.max(counted, this.#mayHaveActed ? 1 : 0);
    return await this.#journal.throwCancel(this.#key, this.#kind, { attempts }, this.#isCancelled);
  }

  async #begin(): Promise<Advance | undefined> {
    const mayBegin = this.#mayBegin === undefined || (await this.#mayBegin());
    // Its branch may have lost the race while the step waited for its permit.
    if (!mayBegin || this.#branch?.hasLost === true) return { waitUntilMs: undefined };
    return await this.#attempt();
  }

  /** Runs the body once. Returns the record if that ends the step. */
  async #attempt(): Promise<StepRecord | undefined> {
    const journal = this.#journal;
    const key = this.#key;
    const kind = this.#kind;
    if (this.#isUnsafe) {
      const attempts = this.#attempts;
      if (attempts >= this.#maxAttempts) {
        return await journal.commit(key, unknownOutcome(key, attempts));
      }
      await journal.note(key, { attempts: attempts + 1, delayMs: 0 });
      if (this.#branch?.hasLost === true) return undefined;
    }
    this.#attempts += 1;
    this.#branch?.begin(key);
    const effects = new EffectWatch();
    let value: unknown;
    let verbs: OpenVerbs | undefined;
    const heartbeats = this.#openHeartbeats((progress) => verbs?.assertNotSecret(progress));
    if (this.#heartbeatTimeoutMs !== undefined) await heartbeats.begin();
    const span = journal.trace?.startBody({ step: key, kind, attempt: this.#attempts });
    try {
      const isLast = this.#attempts >= this.#maxAttempts;
      const body = journal.aroundBody({ step: key, isLast }, this.#body);
      const options: BodyOptions = {
        run: journal.held.run,
        step: key,
        attempt: this.#attempts,
        timeoutMs: this.#timeoutMs,
        signal: this.#permits?.bind(this.#signal) ?? this.#signal,
        awaitsEnd: () => (this.#isCancelled ? this.#awaitEnd(heartbeats.last) : undefined),
        log: journal.log,
        heartbeats,
        openVerbs: (over) => {
          const log = journal.log.logger(() => ({
            step: key,
            attempt: this.#attempts,
            scrub: (text: string) => verbs?.scrub(text) ?? text,
          }));
          verbs = createStepVerbs(journal, { step: key, signal: over, effects, log, span });
          return verbs;
        },
      };
      journal.checkLease();
      const run = () => runBody(body, options);
      value = await (span === undefined ? run() : span.run(run));
      journal.assertFits(key, { kind, value });
      verbs?.assertNotSecret(value);
    } catch (thrown) {
      const error = convertApiException(thrown) ?? ensureError(thrown);
      this.#mayHaveActed ||= effects.mayHaveActed || !isRejected(error);
      const scrub = (text: string) => verbs?.scrub(text) ?? text;
      span?.end(this.#signal.aborted ? "interrupted" : "failed", failureOf(error, scrub));
      return await this.#handle(error, { heartbeat: heartbeats.last, scrub });
    }
    span?.end("done");
    return await journal.commit(key, { kind, value, attempts: this.#attempts });
  }

  #openHeartbeats(check: (progress: unknown) => void): Heartbeats {
    const journal = this.#journal;
    const key = this.#key;
    const attempt = this.#attempts;
    const timeoutMs = this.#heartbeatTimeoutMs;
    // The attempt is counted when it has failed. A start of an unsafe body was counted before it.
    const attempts = this.#isUnsafe ? attempt : attempt - 1;
    return new Heartbeats({
      step: key,
      attempt,
      ...defined({
        timeoutMs,
        last: journal.progressOf(key)?.heartbeat,
        everyMs: journal.beatEveryMs,
      }),
      nowMs: () => journal.nowMs(),
      check,
      onBeat: (progress) => journal.onBeat(key, progress),
      store: (heartbeat, silentMs) =>
        journal.note(key, {
          attempts,
          delayMs: 0,
          mayHaveActed: true,
          ...defined({ heartbeat, silentMs }),
          ...(silentMs === undefined ? {} : { running: attempt }),
        }),
    });
  }

  /** Counts an attempt that sent heartbeats, and whose worker was lost. Returns the record if that ends the step. */
  async #countLost(): Promise<StepRecord | undefined> {
    const journal = this.#journal;
    const attempt = journal.progressOf(this.#key)?.running;
    // The start of an unsafe body was counted, and its outcome is unknown.
    if (attempt === undefined || this.#isUnsafe || this.#branch?.hasLost === true) return undefined;
    if (this.#kind === "step" && journal.cancelPending) return undefined;
    this.#attempts = attempt;
    const message = `the worker of attempt ${attempt} of step "${this.#key}" was lost; it sent no heartbeat in time`;
    const error = new KonvergeError("heartbeat_timeout", message);
    return await this.#fail(error, failureOf(error));
  }

  /** Handles a failed attempt. Returns the record if that ends the step. */
  async #handle(
    error: Error,
    {
      heartbeat,
      scrub,
    }: { readonly heartbeat: Heartbeat | undefined; readonly scrub: (text: string) => string },
  ): Promise<StepRecord | undefined> {
    const journal = this.#journal;
    if (journal.stopped.aborted) {
      await this.#release(heartbeat);
      throw error;
    }
    const fenced = findCause(error, isFenced);
    if (fenced !== undefined) throw fenced;
    journal.keepHeartbeat(this.#key, heartbeat);
    if (this.#branch?.isClosed === true) return undefined;
    if (this.#kind === "step" && (journal.cancelPending || this.#isCancelled)) return undefined;
    const fault = stepFaultOf(error);
    const failure = failureOf(error, scrub);
    if (fault.kind === "uncounted" && !this.#isUnsafe) {
      this.#attempts -= 1;
      this.#uncounted += 1;
      // Uncounted attempts have no limit, so at least half of the delay is kept.
      const random = () => (1 + journal.random()) / 2;
      const delayMs = delayBefore(this.#uncounted, this.#policy, fault.retryAfterMs, random);
      await this.#wait(delayMs, failure, this.#uncounted);
      return undefined;
    }
    return await this.#fail(error, failure);
  }

  /** Counts a failed attempt, or records the failure of the step. */
  async #fail(error: Error, failure: Failure): Promise<StepRecord | undefined> {
    const journal = this.#journal;
    const kind = this.#kind;
    const fault = stepFaultOf(error);
    this.#uncounted = 0;
    if (this.#attempts >= this.#maxAttempts || fault.kind === "final") {
      if (kind === "undo") throw new UndoFailedError(failure.message);
      return await journal.commit(this.#key, {
        kind,
        error: failure,
        attempts: this.#attempts,
        ...(isRefused(error) && !this.#mayHaveActed ? { noEffect: true } : {}),
      });
    }
    const { retryAfterMs } = fault;
    await this.#wait(
      delayBefore(this.#attempts, this.#policy, retryAfterMs, journal.random),
      failure,
    );
    return undefined;
  }

  async #wait(
    delayMs: number,
    { code, message }: Pick<Failure, "code" | "message">,
    uncounted?: number,
  ): Promise<void> {
    const attempts = this.#attempts;
    const acted = this.#mayHaveActed ? { mayHaveActed: true } : {};
    const failed = {
      ...(uncounted === undefined ? { attempt: attempts } : {}),
      atMs: this.#journal.nowMs(),
      code,
      message,
    };
    const tries = withFailedTry(this.#journal.progressOf(this.#key)?.tries, failed);
    const limit = Number.isFinite(this.#maxAttempts) ? { maxAttempts: this.#maxAttempts } : {};
    const report = { message, tries, ...limit };
    const progress = { attempts, delayMs, ...defined({ uncounted }), ...report, ...acted };
    ({ untilMs: this.#waitUntilMs } = await this.#journal.note(this.#key, progress));
  }

  /**
   * Begins the wait for the end of a cancelled body. The body sends no more heartbeats. Another worker must not take the run
   * because of that, or it would undo the step while its body runs. Returns the signal that ends the wait.
   */
  #awaitEnd(heartbeat: Heartbeat | undefined): AbortSignal {
    void this.#noteIdle(heartbeat);
    return this.#journal.stopped;
  }

  /** Notes that the worker stops, so that the attempt does not count as lost. A note that fails does not delay the stop for long. */
  async #release(heartbeat: Heartbeat | undefined): Promise<void> {
    const { reason } = this.#journal.stopped.reason as { readonly reason?: unknown };
    if (reason !== "shutdown") return;
    await Promise.race([this.#noteIdle(heartbeat), sleepMs(RELEASE_MS)]);
  }

  /** Notes that no heartbeat of the attempt is due. After a refusal, the next record of the step is refused as well. */
  async #noteIdle(heartbeat: Heartbeat | undefined): Promise<void> {
    const journal = this.#journal;
    if (journal.progressOf(this.#key)?.running === undefined) return;
    const attempts = this.#isUnsafe ? this.#attempts : this.#attempts - 1;
    const note = { attempts, delayMs: 0, mayHaveActed: true, ...defined({ heartbeat }) };
    await journal.note(this.#key, note).catch(() => undefined);
  }
}

/** Returns true if a Kubernetes verb threw the error. Whether its writes had an effect is known. */
function isRejected(error: Error): boolean {
  return isRefused(error) || stepFaultOf(error).kind === "uncounted";
}

function policyOf(key: string, { delay, policy = failureBackoff }: RetryOptions): BackoffPolicy {
  if (delay === undefined) return policy;
  const delayMs = toMs(delay, `retry.delay of step "${key}"`);
  const jitter = { kind: "none" } as const;
  return { baseMs: delayMs, factor: 1, capMs: delayMs, steps: Infinity, jitter };
}

function unknownOutcome(step: string, attempts: number): StepRecord {
  const message = `a worker was lost in the body of the unsafe step "${step}"; its outcome is unknown, and it is not repeated`;
  return { kind: "step", error: { code: "outcome_unknown", message }, attempts };
}

function isFenced(error: unknown): error is FencedError {
  return error instanceof FencedError;
}

function delayBefore(
  attempt: number,
  policy: BackoffPolicy,
  retryAfterMs: number,
  random: () => number,
): number {
  const next = nextDelay({ ...policy, steps: Infinity }, attempt - 1, random);
  const delayMs = next.kind === "wait" ? next.afterMs : policy.capMs;
  return Math.max(delayMs, retryAfterMs);
}
