import {
  defined,
  ensureError,
  KonvergeError,
  sleepMs,
  type ObjectKey,
  type Outcome,
} from "@konverge/core";
import type { Job } from "bullmq";
import type { RedisClient } from "@konverge/redis";
import type { AttemptStore, EndCall } from "./attempt-store.ts";
import type { Begun, RunningAttempt } from "../scripts/begun.ts";
import type { Ended } from "../scripts/end.ts";
import { createBeginAhead, type BegunAhead } from "./begin-ahead.ts";
import { delayOf, planEnd, type EndPlan, type EndPlanOptions } from "./end-plan.ts";
import { keyOfPayload, type JobPayload, type QueueOwner } from "../keys/job-payload.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { delayJob, moveOn, putBack } from "./move-job.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { RetrySignal } from "./retry-signal.ts";
import type { AttemptEnd, AttemptLease, WorkOptions } from "../contract/work-queue.ts";

/** Longest time before a busy key is looked at again, in ms. */
const BUSY_MAX_MS = 1_000;
const BUSY_JITTER_MS = 50;
const MAX_RECORD_BYTES = 16 * 1_024;
/** Attempts at once up to which a round trip is what a reconcile waits for; above, it is Redis's own time. */
const AHEAD_BELOW = 2;
/** Of a UUID, 48 bits: two workers of a key must not share it. */
const NONCE_CHARS = 13;
const MAX_ERROR_CHARS = 1_000;
/** How soon an end that Redis refused is tried again, in ms. */
const END_RETRY_MS = 500;

export interface JobRunner {
  /** Jobs between begin and end. */
  readonly active: number;
  /** BullMQ's processor: resolves to finish the job, throws to retry or move it. */
  run(job: Job<JobPayload>, token: string | undefined): Promise<void>;
  /** Wakes a job that BullMQ has just put into backoff when news came meanwhile. */
  afterRetry(job: Job<JobPayload>, error: Error): void;
  /** From now on jobs go back to the queue. */
  refuse(): void;
  /** Resolves when no job is between begin and end. */
  idle(): Promise<void>;
  /** Resolves when everything that was sent to Redis without waiting has been answered. */
  settled(): Promise<void>;
}

export interface JobRunnerOptions {
  readonly redis: RedisClient;
  /** Lets what is written until the answer is called leave together. */
  readonly gather: () => () => void;
  readonly names: QueueNames;
  readonly owner: QueueOwner;
  readonly store: AttemptStore;
  readonly keeper: LeaseKeeper;
  readonly work: WorkOptions;
  readonly plan: EndPlanOptions;
  readonly onTimerArmed: (afterMs: number) => void;
}

/** One job from begin to end. */
export function createJobRunner(options: JobRunnerOptions): JobRunner {
  const { redis, names, store, keeper, work, plan: planOptions } = options;
  const { random } = planOptions;
  const nonce = crypto.randomUUID().slice(0, NONCE_CHARS);
  const running = new Set<Promise<void>>();
  const sent = new Set<Promise<unknown>>();
  let starts = 0;
  const nextOwner = () => `${nonce}:${(starts += 1)}`;
  const ahead = createBeginAhead(store, nextOwner);
  let refusing = false;

  const background = (promise: Promise<unknown>) => {
    const tracked = promise
      .catch((error: unknown) => work.onError(ensureError(error)))
      .finally(() => sent.delete(tracked));
    sent.add(tracked);
  };

  const run = async (job: Job<JobPayload>, token: string | undefined) => {
    const early = await ahead.take(job, token);
    if (refusing) {
      if (early !== undefined) await giveBack(early);
      return await putBack(job, token);
    }
    const key = keyOfPayload(job.data, options.owner);
    const id = job.data.key;
    const { owner, askedAtMs, begun } = early ?? (await beginNow(id));
    reportLost(id, begun);
    switch (begun.kind) {
      case "run":
        return await attempt(job, token, { key, id, owner, askedAtMs, begun });
      case "busy":
        return await delayJob(
          job,
          token,
          Math.min(begun.waitMs, BUSY_MAX_MS) + random() * BUSY_JITTER_MS,
        );
      case "backoff": {
        const delayMs = delayOf(planOptions.backoffs.failure, begun.failures - 1, random);
        background(redis.hset(names.keyHash(id), "nextAt", Math.round(begun.nowMs + delayMs)));
        return await delayJob(job, token, delayMs);
      }
      case "dead":
      case "covered":
      case "paused":
        return undefined;
    }
  };

  const reportLost = (id: string, begun: Begun) => {
    if (!("lost" in begun) || begun.lost === 0) return;
    try {
      work.onLost?.({ id, consecutive: begun.lost, isIndexed: names.shard === undefined });
    } catch (error) {
      work.onError(ensureError(error));
    }
  };

  const beginNow = async (id: string): Promise<BegunAhead> => {
    const owner = nextOwner();
    const askedAtMs = performance.now();
    return { id, owner, askedAtMs, begun: await store.begin(id, owner) };
  };
  /** Ends an attempt that never reached its handler. */
  const giveBack = async ({ id, owner, begun }: BegunAhead) => {
    if (begun.kind !== "run") return;
    const outcome = { kind: "cancelled", cause: "shutdown" } as const;
    const plan = planEnd(outcome, begun, planOptions);
    const texts = { errorCode: "", errorMessage: "", record: "" };
    await store.end({ id, begun, owner, outcome: outcome.kind, plan, ...texts }).answer;
  };

  const attempt = async (
    job: Job<JobPayload>,
    token: string | undefined,
    start: { key: ObjectKey; id: string; owner: string; askedAtMs: number; begun: RunningAttempt },
  ) => {
    const { id, owner, begun } = start;
    const held = keeper.hold({ id, jobId: job.id ?? id, epoch: begun.epoch }, start.askedAtMs);
    const lease = leaseOf(start.key, id, begun, held.controller.signal);
    const end = await handle(lease);
    keeper.release(held);

    const plan = planEnd(end.outcome, begun, planOptions);
    const ending = {
      id,
      begun,
      owner,
      outcome: end.outcome.kind,
      plan,
      ...errorTexts(end.outcome),
      record: fitting(recordOf(end, plan), id),
    };
    const isPlain = plan.job === "complete" && plan.timerMs === undefined && !plan.dead;
    // With little else to do, the end, BullMQ's finish and the next begin follow each other without waiting.
    const isAhead = isPlain && token !== undefined && running.size <= AHEAD_BELOW && !refusing;
    const release = isAhead ? options.gather() : () => undefined;
    const handed = store.end(ending);
    const stored = handed.answer.catch((error: unknown) => insist(ending, ensureError(error)));
    const closed = stored.then((ended) => {
      report(lease, end, plan, ended);
      return ended;
    });
    // One connection keeps the order, so BullMQ's finish may follow the end without waiting for its answer. Where more
    // than a record depends on it, wait.
    if (isPlain) {
      background(closed);
      await handed.sent;
      if (isAhead) ahead.follow(job, token, release);
      return;
    }
    const { fenced, priority } = await closed;
    if (plan.timerMs !== undefined) options.onTimerArmed(plan.timerMs);
    // Another worker has this job now; BullMQ refuses whatever we do to it.
    if (fenced) throw new RetrySignal("fenced", 1);
    // Cancelled meanwhile: nothing waits for another attempt.
    if (priority === 0) return;
    // The job leaves with its new place: with the old one it would overtake all that came since.
    if (job.priority !== priority) await job.changePriority({ priority });
    await moveOn(job, token, plan, end.outcome);
  };

  /** A Redis that refuses (BUSY, READONLY) is asked again: the job may be finished, and then nobody else says how it ended. */
  const insist = async (ending: EndCall, refusal: Error): Promise<Ended> => {
    work.onError(refusal);
    for (;;) {
      if (refusing) throw refusal;
      await sleepMs(END_RETRY_MS);
      try {
        return await store.end(ending).answer;
      } catch {
        // The same as the first, which was told.
      }
    }
  };

  const handle = async (lease: AttemptLease): Promise<AttemptEnd> => {
    try {
      return await work.handle(lease);
    } catch (error) {
      work.onError(ensureError(error));
      const cause = ensureError(error);
      const fault = new KonvergeError("internal", "the attempt's runner threw", { cause });
      return { outcome: { kind: "retry", error: fault } };
    }
  };

  const report = (lease: AttemptLease, end: AttemptEnd, plan: EndPlan, ended: Ended) => {
    const { fenced, priority } = ended;
    const waits = priority > 0 && (plan.job === "retry" || plan.job === "delay");
    try {
      work.onClosed?.(lease, end, { fenced, ...(waits ? { retryAfterMs: plan.delayMs } : {}) });
    } catch (error) {
      // The attempt is stored; a listener's mistake must not change what becomes of the job.
      work.onError(ensureError(error));
    }
  };

  /** BullMQ keeps a parked follow-up until the retry has ended; news may not wait for a backoff. */
  const wakeForNews = async (job: Job<JobPayload>) => {
    const priority = await store.wake(job.data.key);
    if (priority === 0) return;
    try {
      await job.changePriority({ priority });
      await job.promote();
    } catch (error) {
      // Somebody else has woken it, or it runs already.
      if (!/not in the delayed state|Missing key/.test(ensureError(error).message)) throw error;
    }
  };

  const fitting = (record: string, id: string) => {
    const bytes = Buffer.byteLength(record);
    if (bytes <= MAX_RECORD_BYTES) return record;
    work.onError(
      new KonvergeError(
        "internal",
        `the record of ${id} has ${bytes} bytes; at most ${MAX_RECORD_BYTES} are kept`,
      ),
    );
    return JSON.stringify({ droppedBytes: bytes });
  };

  return {
    get active() {
      return running.size;
    },
    async run(job, token) {
      const settled = run(job, token);
      running.add(settled);
      try {
        await settled;
      } finally {
        running.delete(settled);
      }
    },
    afterRetry(job, error) {
      if (error instanceof RetrySignal) background(wakeForNews(job));
      else work.onError(error);
    },
    refuse() {
      refusing = true;
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
    async settled() {
      await Promise.all((await ahead.rest()).map(giveBack));
      while (sent.size > 0) await Promise.all(sent);
    },
  };
}

function leaseOf(
  key: ObjectKey,
  id: string,
  begun: RunningAttempt,
  signal: AbortSignal,
): AttemptLease {
  const { kind: _, floor, traceparent, covered: __, lost: ___, ...fields } = begun;
  return {
    key,
    id,
    ...fields,
    ...(floor === "" ? {} : { floor }),
    ...defined({ traceparent }),
    signal,
  };
}

function recordOf({ record = "" }: AttemptEnd, { job, delayMs }: EndPlan): string {
  if (typeof record === "string") return record;
  return record(job === "retry" || job === "delay" ? Math.round(delayMs) : 0);
}

function errorTexts(outcome: Outcome): { errorCode: string; errorMessage: string } {
  const error = "error" in outcome ? outcome.error : undefined;
  if (error === undefined) return { errorCode: "", errorMessage: "" };
  const code = "code" in error && typeof error.code === "string" ? error.code : outcome.kind;
  return { errorCode: code, errorMessage: error.message.slice(0, MAX_ERROR_CHARS) };
}
