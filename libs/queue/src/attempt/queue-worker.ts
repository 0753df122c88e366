import {
  conflictBackoff,
  ensureError,
  failureBackoff,
  rejectedBackoff,
  type BackoffPolicy,
} from "@konverge/core";
import { Worker, type Job } from "bullmq";
import { startAgingPump } from "../request/aging-pump.ts";
import { createAttemptStore } from "./attempt-store.ts";
import { checkedFairness } from "../contract/fairness.ts";
import type { JobPayload, QueueOwner } from "../keys/job-payload.ts";
import type { EndPlanOptions } from "./end-plan.ts";
import { JobRunner } from "./job-runner.ts";
import { createLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";
import type { QueueNames } from "../keys/queue-names.ts";
import type { RedisClient } from "@konverge/redis";
import type { RestoreFence } from "../restore/restore-watch.ts";
import { delayOfRetry } from "./retry-signal.ts";
import { BACKOFF_TYPE } from "../scripts/add-job.ts";
import { StartedWorker } from "./started-worker.ts";
import { createStretchedBackoff } from "./stretched-backoff.ts";
import type { QueueProcess, WorkerConnections } from "./queue-process.ts";
import { unpark } from "../request/unpark.ts";
import type { QueueWorker, WorkOptions } from "../contract/work-queue.ts";

export const DEFAULT_CONCURRENCY = 16;
/** A stalled job belongs to a lost worker and is never dropped for it; the key counts lost attempts. */
const MAX_STALLED = 1_000_000_000;
/** Stands for no limit. */
const MOST_LOST = 1_000_000_000;
/**
 * Longest waits of an idle worker for BullMQ's marker, in seconds: with the connection of the process, and with its own, which
 * should not block for longer. A lost marker is restored within two seconds.
 */
const [IDLE_WAIT_S, OWN_WAIT_S] = [600, 10];
/**
 * While jobs are active, a worker that is not elected makes one of this many looks for jobs of lost workers: the elected one may
 * be paused.
 */
const LOOKS_SKIPPED = 3;
/** Failed jobs that BullMQ keeps for inspection. Only jobs that are not requests fail. */
const FAILED_KEPT = 1_000;

export interface StartWorkerOptions {
  readonly names: QueueNames;
  readonly owner: QueueOwner;
  readonly leaseMs: number;
  readonly process: QueueProcess;
  /** Requests a key whose timer is due. */
  readonly requestTimer: (id: string) => Promise<void>;
  readonly work: WorkOptions;
  readonly fence?: RestoreFence | undefined;
}

/** Starts to process the jobs of one queue, until the worker is stopped. */
export function startQueueWorker(options: StartWorkerOptions): QueueWorker {
  const { names, owner, leaseMs, requestTimer } = options;
  const onError = (error: Error) => {
    if (!isEchoOfLostLock(error)) options.work.onError(error);
  };
  const work: WorkOptions = { ...options.work, onError };
  const fairness = checkedFairness(work.fairness ?? {});
  const consumer = options.process.connect(onError);
  const { redis } = consumer;
  const store = createAttemptStore({
    redis,
    names,
    workerId: work.workerId,
    leaseMs,
    maxLost: Math.min(work.maxLost ?? Infinity, MOST_LOST),
    fence: options.fence,
  });
  const keeper = createLeaseKeeper({ leaseMs, renew: (leases) => store.renew(leases) });
  const pump = options.process.pumps.start({
    names,
    fire: requestTimer,
    async carryOut(isElected) {
      if (isElected) await unpark(redis, names, 0);
      keeper.cancel(await redis.hgetall(names.aborts));
    },
    isActive: () => runner.active > 0,
    onError,
  });
  const aging = startAgingPump({
    redis,
    names,
    fairness,
    isElected: () => pump.isElected,
    hasWaiting: () => pump.hasWaiting,
    onError,
  });
  const jobWait = consumer.waits?.open(`${names.bullRoot}marker`);
  let looks = 0;
  const looksForLost = () => {
    looks += 1;
    return pump.hasActive && (pump.isElected || looks % LOOKS_SKIPPED === 1);
  };
  const runner: JobRunner = new JobRunner({
    redis,
    names,
    owner,
    store,
    keeper,
    work,
    jobWait,
    looksForLost,
    onHeld: () => options.fence?.onHeld(),
    plan: planOptionsOf(work, redis, names),
    onBegan: () => pump.began(),
    onTimerArmed: (afterMs) => pump.armed(afterMs),
  });
  const worker = openBullWorker(options, consumer, runner);
  follow(worker, { runner, keeper, onError });
  return new StartedWorker({
    worker,
    consumer,
    runner,
    keeper,
    stopWaiting: () => jobWait?.cancel(),
    pumps: [pump, aging],
    leaseMs,
    onError,
  });
}

function planOptionsOf(work: WorkOptions, redis: RedisClient, names: QueueNames): EndPlanOptions {
  const {
    conflict = conflictBackoff,
    failure = failureBackoff,
    rejected = rejectedBackoff,
  } = work.backoffs ?? {};
  const failureNow = stretched(failure, work, () => redis.zcard(`${names.bullRoot}delayed`));
  return {
    backoffs: {
      conflict,
      rejected,
      get failure() {
        return failureNow();
      },
    },
    maxFailures: work.maxFailures ?? Infinity,
    random: work.random ?? Math.random,
  };
}

function stretched(
  policy: BackoffPolicy,
  { retriesPerSecond, onError }: WorkOptions,
  countWaiting: () => Promise<number>,
): () => BackoffPolicy {
  if (retriesPerSecond === undefined) return () => policy;
  return createStretchedBackoff({ policy, perSecond: retriesPerSecond, countWaiting, onError });
}

function openBullWorker(
  { names, leaseMs, work }: StartWorkerOptions,
  { redis, waits }: WorkerConnections,
  runner: JobRunner,
): Worker<JobPayload> {
  const drainDelay = waits === undefined ? OWN_WAIT_S : IDLE_WAIT_S;
  return new Worker<JobPayload>(
    names.bullName,
    (job: Job<JobPayload>, token?: string) => runner.run(job, token),
    {
      connection: redis,
      prefix: names.bullPrefix,
      concurrency: work.concurrency ?? DEFAULT_CONCURRENCY,
      drainDelay,
      lockDuration: leaseMs,
      stalledInterval: leaseMs / 2,
      maxStalledCount: MAX_STALLED,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: FAILED_KEPT },
      settings: {
        backoffStrategy: (_attempts, type, error) => delayOfRetry(type === BACKOFF_TYPE, error),
      },
    },
    runner.backendFactory,
  );
}

/** Connects the events of BullMQ's worker. */
function follow(
  worker: Worker<JobPayload>,
  {
    runner,
    keeper,
    onError,
  }: {
    readonly runner: JobRunner;
    readonly keeper: LeaseKeeper;
    readonly onError: (error: Error) => void;
  },
): void {
  worker.on("error", onError);
  worker.on("failed", (job, error) => {
    if (job !== undefined) runner.afterRetry(job, error);
  });
  worker.on("locksRenewed", ({ jobIds }) => {
    keeper.renewed(jobIds).catch((error: unknown) => onError(ensureError(error)));
  });
  worker.on("lockRenewalFailed", (jobIds) => keeper.lost(jobIds));
}

/** Matches BullMQ's messages for a job that another worker owns. The attempt was aborted and its end is fenced. */
function isEchoOfLostLock({ message }: Error): boolean {
  return /^(Missing key|Missing lock|Lock mismatch|could not renew lock) for job/.test(message);
}
