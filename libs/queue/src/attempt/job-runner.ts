import { defined, ensureError, KonvergeError, sleepMs, type ObjectKey } from "@konverge/core";
import type { Job } from "bullmq";
import type { RedisClient } from "@konverge/redis";
import type { AttemptStore, EndCall } from "./attempt-store.ts";
import { textsOf } from "./attempt-texts.ts";
import { BackgroundCalls } from "./background-calls.ts";
import { SUSPECT_FROM } from "../scripts/begin-attempt.ts";
import type { Begun, RunningAttempt } from "../scripts/begun.ts";
import type { Ended } from "../scripts/end.ts";
import { delayOf, planEnd, type EndPlan, type EndPlanOptions } from "./end-plan.ts";
import { keyOfPayload, type JobPayload, type QueueOwner } from "../keys/job-payload.ts";
import { AttemptCancelledError, type LeaseKeeper } from "./lease-keeper.ts";
import { delayJob, moveOn, putBack, type TakenJob } from "./move-job.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { keepLog } from "./running-log.ts";
import { ProcessQuarantine } from "./process-quarantine.ts";
import type { Quarantine } from "../contract/quarantine.ts";
import { RetrySignal } from "./retry-signal.ts";
import type { JobWait } from "./job-waits.ts";
import { createSlotBackend, type BegunAhead, type SlotBackend } from "./slot-backend.ts";
import type { AttemptEnd, AttemptLease, WorkOptions } from "../contract/work-queue.ts";

/** Longest delay of a job whose key is running elsewhere, in ms. */
const BUSY_MAX_MS = 1_000;
const BUSY_JITTER_MS = 50;
/** Shortest delay of a job in a Redis that was restored, in ms. The worker pauses once it has noticed the restore. */
const HELD_MS = 1_000;
/** 48 bits of a UUID: two workers of a key must not share a nonce. */
const NONCE_CHARS = 13;
/** Delay before an end that Redis rejected is sent again, in ms. */
const END_RETRY_MS = 500;

export interface JobRunnerOptions {
  readonly redis: RedisClient;
  readonly names: QueueNames;
  readonly owner: QueueOwner;
  readonly store: AttemptStore;
  readonly keeper: LeaseKeeper;
  readonly work: WorkOptions;
  readonly plan: EndPlanOptions;
  /** How BullMQ's worker waits for jobs; undefined for its own way. */
  readonly jobWait: JobWait | undefined;
  /** Asked at intervals whether to look for jobs of lost workers. */
  readonly looksForLost: () => boolean;
  /** Called when a job was not begun because Redis was restored. */
  readonly onHeld: () => void;
  /** Called when an attempt begins. */
  readonly onBegan: () => void;
  readonly onTimerArmed: (afterMs: number) => void;
}

interface StartedAttempt {
  readonly key: ObjectKey;
  readonly id: string;
  readonly owner: string;
  readonly askedAtMs: number;
  readonly begun: RunningAttempt;
}

/** Runs jobs from begin to end: begins the attempt, calls the handler, stores the end and moves the job on. */
export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #nonce = crypto.randomUUID().slice(0, NONCE_CHARS);
  readonly #running = new Set<Promise<void>>();
  readonly #background: BackgroundCalls;
  readonly #slots: SlotBackend;
  readonly #quarantine: Quarantine;
  #starts = 0;
  #finished = 0;
  #refusing = false;
  /** True once a job was returned to the queue. */
  #hasReturned = false;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#background = new BackgroundCalls(options.work.onError);
    this.#quarantine = options.work.quarantine ?? new ProcessQuarantine();
    this.#slots = createSlotBackend({
      store: options.store,
      nextOwner: () => this.#nextOwner(),
      jobWait: options.jobWait,
      looksForLost: options.looksForLost,
    });
  }

  /** The backend of BullMQ's worker. */
  get backendFactory(): SlotBackend["factory"] {
    return this.#slots.factory;
  }

  /** Jobs between begin and end. */
  get active(): number {
    return this.#running.size;
  }

  /** Jobs that have ended. */
  get finished(): number {
    return this.#finished;
  }

  /** BullMQ's processor: resolves to finish the job, throws to retry or move it. */
  async run(job: Job<JobPayload>, token: string | undefined): Promise<void> {
    const settled = this.#run({ job, token, announce: () => this.#announce() });
    this.#running.add(settled);
    try {
      await settled;
    } finally {
      this.#running.delete(settled);
      this.#finished += 1;
    }
  }

  /** Ends the backoff of a job that BullMQ has just delayed if new events arrived meanwhile. */
  afterRetry(job: Job<JobPayload>, error: Error): void {
    if (error instanceof RetrySignal) this.#background.add(this.#wakeForNewEvents(job));
    else this.#options.work.onError(error);
  }

  /** Returns all further jobs to the queue. */
  refuse(): void {
    this.#refusing = true;
  }

  /** Resolves when no job is between begin and end. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** Resolves when all background calls to Redis have returned. */
  async settled(): Promise<void> {
    await Promise.all(this.#slots.rest().map((early) => this.#giveBack(early)));
    await this.#background.settled();
  }

  /**
   * Announces returned jobs once more, after the worker has closed its connections: its own blocked call may have taken the
   * marker.
   */
  async announceReturned(): Promise<void> {
    if (this.#hasReturned) await this.#addMarker();
  }

  #nextOwner(): string {
    this.#starts += 1;
    return `${this.#nonce}:${this.#starts}`;
  }

  async #run(taken: TakenJob): Promise<void> {
    const { job, token } = taken;
    const early = this.#slots.take(job, token);
    if (this.#refusing) {
      if (early !== undefined) await this.#giveBack(early);
      return await putBack(taken);
    }
    const key = keyOfPayload(job.data, this.#options.owner);
    const id = job.data.key;
    const { owner, askedAtMs, begun } = early ?? (await this.#beginNow(id));
    this.#reportLost(id, begun);
    switch (begun.kind) {
      case "run":
        return await this.#attempt(taken, { key, id, owner, askedAtMs, begun });
      case "busy": {
        const jitterMs = this.#options.plan.random() * BUSY_JITTER_MS;
        return await delayJob(taken, Math.min(begun.waitMs, BUSY_MAX_MS) + jitterMs);
      }
      case "backoff":
        return await this.#backOff(taken, begun);
      case "held": {
        this.#options.onHeld();
        return await delayJob(taken, HELD_MS * (1 + this.#options.plan.random()));
      }
      case "dead":
      case "covered":
      case "paused":
        return undefined;
    }
  }

  async #backOff(
    taken: TakenJob,
    begun: { readonly failures: number; readonly nowMs: number },
  ): Promise<void> {
    const { redis, names, plan } = this.#options;
    const delayMs = delayOf(plan.backoffs.failure, begun.failures - 1, plan.random);
    const nextAtMs = Math.round(begun.nowMs + delayMs);
    this.#background.add(redis.hset(names.keyHash(taken.job.data.key), "nextAt", nextAtMs));
    return await delayJob(taken, delayMs);
  }

  #reportLost(id: string, begun: Begun): void {
    if (!("lost" in begun) || begun.lost === 0) return;
    const { work, names } = this.#options;
    try {
      work.onLost?.({ id, consecutive: begun.lost, isIndexed: names.shard === undefined });
    } catch (error) {
      work.onError(ensureError(error));
    }
  }

  async #beginNow(id: string): Promise<BegunAhead> {
    const owner = this.#nextOwner();
    const askedAtMs = performance.now();
    return { id, owner, askedAtMs, begun: await this.#options.store.begin(id, owner) };
  }

  #announce(): void {
    this.#hasReturned = true;
    this.#background.add(this.#addMarker());
  }

  async #addMarker(): Promise<void> {
    const { redis, names } = this.#options;
    await redis.zadd(`${names.bullRoot}marker`, 0, "0");
  }

  /** Ends an attempt that never reached its handler. */
  async #giveBack({ id, owner, begun }: BegunAhead): Promise<void> {
    if (begun.kind !== "run") return;
    const outcome = { kind: "cancelled", cause: "shutdown" } as const;
    const plan = planEnd(outcome, begun, this.#options.plan);
    const texts = { errorCode: "", errorMessage: "", record: "" };
    await this.#options.store.end({ id, begun, owner, outcome: outcome.kind, plan, ...texts })
      .answer;
  }

  async #attempt(taken: TakenJob, start: StartedAttempt): Promise<void> {
    const { job } = taken;
    const { store, keeper, work } = this.#options;
    const { id, owner, begun } = start;
    const held = keeper.hold(
      { id, jobId: job.id ?? id, epoch: begun.epoch, owner },
      start.askedAtMs,
    );
    this.#options.onBegan();
    const { signal } = held.controller;
    const { redis, names } = this.#options;
    const lease = leaseOf(start, {
      signal,
      checkExpiry: () => keeper.check(held),
      // A lost attempt must not replace the lines of the next one.
      keepLog: async (lines) =>
        signal.aborted ? undefined : await keepLog(redis, names, { id, epoch: begun.epoch, lines }),
    });
    const end = await this.#handle(lease, begun.lostInARow >= SUSPECT_FROM);
    keeper.release(held);

    const plan = planEnd(end.outcome, begun, this.#options.plan);
    const texts = textsOf(id, end, plan, work.onError);
    const { versions } = end;
    const outcome = end.outcome.kind;
    const ending = { id, begun, owner, outcome, plan, ...texts, ...defined({ versions }) };
    const isPlain = plan.job === "complete" && plan.timerMs === undefined && !plan.dead;
    const handed = isPlain ? this.#slots.end(job, ending) : store.end(ending);
    const closed = handed.answer
      .catch((error: unknown) => this.#retryEnd(ending, ensureError(error)))
      .then((ended) => {
        this.#reportClosed(lease, end, plan, ended);
        return ended;
      });
    // BullMQ's finish contains the end, or follows it on the same connection. Wait only if more than a record depends
    // on the result.
    if (isPlain) {
      this.#background.add(closed);
      await handed.sent;
      return;
    }
    await this.#moveOn(taken, end, plan, await closed);
  }

  async #moveOn(
    taken: TakenJob,
    end: AttemptEnd,
    plan: EndPlan,
    { fenced, priority }: Ended,
  ): Promise<void> {
    if (plan.timerMs !== undefined) this.#options.onTimerArmed(plan.timerMs);
    // Another worker owns this job now; BullMQ rejects every change by this one.
    if (fenced) throw new RetrySignal("fenced", 1);
    // Cancelled meanwhile: no request is left for another attempt.
    if (priority === 0) return;
    // The job leaves with its new priority: with the old one it would overtake all requests since.
    const { job } = taken;
    if (job.priority !== priority) await job.changePriority({ priority });
    await moveOn(taken, plan, end);
  }

  /** Repeats an end that Redis rejected (BUSY, READONLY): the job may be finished, so no other attempt stores it. */
  async #retryEnd(ending: EndCall, refusal: Error): Promise<Ended> {
    this.#options.work.onError(refusal);
    for (;;) {
      if (this.#refusing) throw refusal;
      await sleepMs(END_RETRY_MS);
      try {
        return await this.#options.store.end(ending).answer;
      } catch {
        // The same error as the first, which was reported.
      }
    }
  }

  async #handle(lease: AttemptLease, isSuspect: boolean): Promise<AttemptEnd> {
    const { work } = this.#options;
    const turn = this.#quarantine.enter(isSuspect, lease.signal);
    if (turn !== undefined) await turn;
    if (isSuspect) await this.#noteTurn(lease);
    // The process may have stood still since the lease began.
    lease.checkExpiry();
    const { reason } = lease.signal;
    if (reason instanceof AttemptCancelledError && reason.reason === "leaseLost") {
      this.#quarantine.leave(isSuspect);
      return { outcome: { kind: "cancelled", cause: "leaseLost" } };
    }
    try {
      return await work.handle(lease);
    } catch (error) {
      const cause = ensureError(error);
      work.onError(cause);
      const fault = new KonvergeError("internal", "the attempt's runner threw", { cause });
      return { outcome: { kind: "retry", error: fault } };
    } finally {
      this.#quarantine.leave(isSuspect);
    }
  }

  /** Marks the turn of a suspect in Redis: from now on, a crash counts. Ends with the lease if Redis does not answer. */
  async #noteTurn({ id, epoch, signal }: AttemptLease): Promise<void> {
    const { redis, names } = this.#options;
    const noted = redis.hset(names.keyHash(id), "turn", epoch);
    this.#background.add(noted);
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    const onAbort = () => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) resolve();
    await Promise.race([noted.catch(() => undefined), aborted]);
    signal.removeEventListener("abort", onAbort);
  }

  #reportClosed(lease: AttemptLease, end: AttemptEnd, plan: EndPlan, ended: Ended): void {
    const { fenced, priority } = ended;
    const { work } = this.#options;
    const waits = priority > 0 && (plan.job === "retry" || plan.job === "delay");
    try {
      work.onClosed?.(lease, end, {
        fenced,
        ...defined({ retryAfterMs: waits ? plan.delayMs : undefined }),
      });
    } catch (error) {
      // The attempt is stored; an error in a listener must not change the job.
      work.onError(ensureError(error));
    }
  }

  /** BullMQ keeps a parked follow-up until the retry ends; new events must not wait for a backoff. */
  async #wakeForNewEvents(job: Job<JobPayload>): Promise<void> {
    const priority = await this.#options.store.wake(job.data.key);
    if (priority === 0) return;
    try {
      await job.changePriority({ priority });
      await job.promote();
    } catch (error) {
      // Another process promoted it, or it is already running.
      if (!/not in the delayed state|Missing key/.test(ensureError(error).message)) throw error;
    }
  }
}

function leaseOf(
  { key, id, begun }: StartedAttempt,
  held: Pick<AttemptLease, "signal" | "checkExpiry" | "keepLog">,
): AttemptLease {
  const {
    kind: _,
    floor,
    traceparent,
    covered: __,
    lost: ___,
    lostInARow: ____,
    ...fields
  } = begun;
  return {
    key,
    id,
    ...fields,
    ...defined({ floor: floor === "" ? undefined : floor, traceparent }),
    ...held,
  };
}
