import {
  conflictBackoff,
  ensureError,
  failureBackoff,
  KonvergeError,
  rejectedBackoff,
  sleepMs,
} from "@konverge/core";
import { Worker, type Job } from "bullmq";
import { startAgeingPump } from "../request/ageing-pump.ts";
import { createAttemptStore } from "./attempt-store.ts";
import { checkedFairness } from "../contract/fairness.ts";
import type { JobPayload, QueueOwner } from "../keys/job-payload.ts";
import { createJobRunner } from "./job-runner.ts";
import { AttemptCancelledError, createLeaseKeeper } from "./lease-keeper.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import { openConsumer, type RedisTarget } from "@konverge/redis";
import { delayOfRetry } from "./retry-signal.ts";
import { BACKOFF_TYPE } from "../scripts/add-job.ts";
import { createStretchedBackoff } from "./stretched-backoff.ts";
import { startTimerPump } from "../request/timer-pump.ts";
import { unpark } from "../request/unpark.ts";
import type { QueueWorker, WorkOptions } from "../contract/work-queue.ts";

export const DEFAULT_CONCURRENCY = 16;
const DEFAULT_GRACE_MS = 30_000;
/** What aborted handlers get to notice it, in ms; the engine leaves them behind after 2 s. */
const ABORTED_GRACE_MS = 3_000;
/** What each step of hanging up may take, in ms. */
const CLOSE_MS = 1_000;
/** A job that stalls is work of a lost worker, never a reason to drop it; lost attempts are counted by the key. */
const MAX_STALLED = 1_000_000_000;
/** Jobs that were no requests of ours, for people to look at. */
const FAILED_KEPT = 1_000;

export interface StartWorkerOptions {
  readonly target: RedisTarget;
  readonly names: QueueNames;
  readonly owner: QueueOwner;
  readonly leaseMs: number;
  /** Requests a key whose timer is due. */
  readonly requestTimer: (id: string) => Promise<void>;
  readonly work: WorkOptions;
}

/** Takes jobs from one queue until it is stopped. */
export function startQueueWorker(options: StartWorkerOptions): QueueWorker {
  const { names, owner, leaseMs, requestTimer, work } = options;
  const fairness = checkedFairness(work.fairness ?? {});
  const consumer = openConsumer(options.target);
  const { redis } = consumer;
  const onError = (error: Error) => {
    if (!isEchoOfLostLock(error)) work.onError(error);
  };
  const store = createAttemptStore({ redis, names, workerId: work.workerId, leaseMs });
  const keeper = createLeaseKeeper({ leaseMs, renew: (leases) => store.renew(leases) });
  const pump = startTimerPump({
    redis,
    names,
    fire: requestTimer,
    async carryOut() {
      await unpark(redis, names, 0);
      keeper.cancel(await redis.hgetall(names.aborts));
    },
    onError,
  });
  const ageing = startAgeingPump({ redis, names, fairness, onError });
  const {
    conflict = conflictBackoff,
    failure = failureBackoff,
    rejected = rejectedBackoff,
  } = work.backoffs ?? {};
  const { retriesPerSecond } = work;
  const failureNow =
    retriesPerSecond === undefined
      ? () => failure
      : createStretchedBackoff({
          policy: failure,
          perSecond: retriesPerSecond,
          countWaiting: () => redis.zcard(`${names.bullRoot}delayed`),
          onError,
        });
  const runner = createJobRunner({
    redis,
    gather: () => consumer.gather(),
    names,
    owner,
    store,
    keeper,
    work: { ...work, onError },
    plan: {
      backoffs: {
        conflict,
        rejected,
        get failure() {
          return failureNow();
        },
      },
      maxFailures: work.maxFailures ?? Infinity,
      random: work.random ?? Math.random,
    },
    onTimerArmed: (afterMs) => pump.armed(afterMs),
  });

  const worker = new Worker<JobPayload>(
    names.bullName,
    (job: Job<JobPayload>, token?: string) => runner.run(job, token),
    {
      connection: redis,
      prefix: names.bullPrefix,
      concurrency: work.concurrency ?? DEFAULT_CONCURRENCY,
      lockDuration: leaseMs,
      stalledInterval: leaseMs / 2,
      maxStalledCount: MAX_STALLED,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: FAILED_KEPT },
      settings: {
        backoffStrategy: (_attempts, type, error) => delayOfRetry(type === BACKOFF_TYPE, error),
      },
    },
  );
  worker.on("error", onError);
  worker.on("failed", (job, error) => {
    if (job !== undefined) runner.afterRetry(job, error);
  });
  worker.on("locksRenewed", ({ jobIds }) => {
    keeper.renewed(jobIds).catch((error: unknown) => onError(ensureError(error)));
  });
  worker.on("lockRenewalFailed", (jobIds) => keeper.lost(jobIds));
  redis.on("error", onError);

  const killed = Promise.withResolvers<void>();
  let stopping: Promise<void> | undefined;

  const shutDown = async (graceMs: number) => {
    runner.refuse();
    await within(CLOSE_MS, worker.pause(true));
    await within(graceMs, Promise.race([runner.idle(), killed.promise]));
    if (runner.active > 0) {
      keeper.abortAll(new AttemptCancelledError("shutdown", "the worker is stopping"));
      await within(ABORTED_GRACE_MS, runner.idle());
    }
    const rounds = Promise.all([pump.stop(), ageing.stop(), runner.settled(), redis.ping()]);
    const answers = (await within(CLOSE_MS, rounds)) && redis.status === "ready";
    // Forced when a handler does not return: its key runs elsewhere once the lease has run out. And while Redis is away:
    // BullMQ would wait for its connection, and its timers would keep the process.
    await within(CLOSE_MS, worker.close(runner.active > 0 || !answers));
    // BullMQ tells of a failed attempt once it has put its job back, and then news may wake it.
    await within(CLOSE_MS, runner.settled());
    keeper.close();
    if (runner.active > 0) {
      const left = `${runner.active} attempts could not be ended: their keys run again once a lease of ${leaseMs} ms is over`;
      work.onError(new KonvergeError("cancelled", left));
    }
    consumer.disconnect();
  };

  return {
    get active() {
      return runner.active;
    },
    pause() {
      if (stopping === undefined)
        worker.pause(true).catch((error: unknown) => onError(ensureError(error)));
    },
    resume() {
      if (stopping === undefined)
        worker.resume().catch((error: unknown) => onError(ensureError(error)));
    },
    stop({ graceMs = DEFAULT_GRACE_MS } = {}) {
      stopping ??= shutDown(graceMs);
      return stopping;
    },
    kill() {
      killed.resolve();
      stopping ??= shutDown(0);
      return stopping;
    },
  };

  /** False when it took longer or failed. */
  async function within(ms: number, pending: Promise<unknown>): Promise<boolean> {
    const timer = new AbortController();
    const late = sleepMs(ms, timer.signal).catch(() => undefined);
    try {
      return await Promise.race([pending.then(() => true), late.then(() => false)]);
    } catch (error) {
      onError(ensureError(error));
      return false;
    } finally {
      timer.abort();
    }
  }
}

/** BullMQ's words for "this job is another worker's now". The attempt was told by its signal and its end is fenced. */
function isEchoOfLostLock({ message }: Error): boolean {
  return /^(Missing key|Missing lock|Lock mismatch|could not renew lock) for job/.test(message);
}
