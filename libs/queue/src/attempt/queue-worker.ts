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
import { openConsumer, type RedisClient, type RedisTarget } from "@konverge/redis";
import type { RestoreFence } from "../restore/restore-watch.ts";
import { delayOfRetry } from "./retry-signal.ts";
import { BACKOFF_TYPE } from "../scripts/add-job.ts";
import { StartedWorker } from "./started-worker.ts";
import { createStretchedBackoff } from "./stretched-backoff.ts";
import type { QueuePumps } from "../request/queue-pumps.ts";
import { unpark } from "../request/unpark.ts";
import type { QueueWorker, WorkOptions } from "../contract/work-queue.ts";

export const DEFAULT_CONCURRENCY = 16;
/** A stalled job belongs to a lost worker and is never dropped for it; the key counts lost attempts. */
const MAX_STALLED = 1_000_000_000;
/** Stands for no limit. */
const MOST_LOST = 1_000_000_000;
/** Longest wait of an idle worker for BullMQ's marker, in seconds. A lost marker is restored within a second. */
const IDLE_WAIT_S = 10;
/** Failed jobs that BullMQ keeps for inspection. Only jobs that are not requests fail. */
const FAILED_KEPT = 1_000;

export interface StartWorkerOptions {
  readonly target: RedisTarget;
  readonly names: QueueNames;
  readonly owner: QueueOwner;
  readonly leaseMs: number;
  readonly pumps: QueuePumps;
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
  const consumer = openConsumer(options.target);
  const { redis } = consumer;
  redis.on("error", onError);
  const store = createAttemptStore({
    redis,
    names,
    workerId: work.workerId,
    leaseMs,
    maxLost: Math.min(work.maxLost ?? Infinity, MOST_LOST),
    fence: options.fence,
  });
  const keeper = createLeaseKeeper({ leaseMs, renew: (leases) => store.renew(leases) });
  const pump = options.pumps.start({
    names,
    fire: requestTimer,
    async carryOut(isElected) {
      if (isElected) await unpark(redis, names, 0);
      keeper.cancel(await redis.hgetall(names.aborts));
    },
    isActive: () => runner.active > 0,
    onError,
  });
  const isElected = () => pump.isElected;
  const aging = startAgingPump({ redis, names, fairness, isElected, onError });
  const runner: JobRunner = new JobRunner({
    redis,
    names,
    owner,
    store,
    keeper,
    work,
    onHeld: () => options.fence?.onHeld(),
    plan: planOptionsOf(work, redis, names),
    onBegan: () => pump.began(),
    onTimerArmed: (afterMs) => pump.armed(afterMs),
  });
  const worker = openBullWorker(options, redis, runner);
  follow(worker, { runner, keeper, onError });
  return new StartedWorker({
    worker,
    consumer,
    runner,
    keeper,
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
  redis: RedisClient,
  runner: JobRunner,
): Worker<JobPayload> {
  return new Worker<JobPayload>(
    names.bullName,
    (job: Job<JobPayload>, token?: string) => runner.run(job, token),
    {
      connection: redis,
      prefix: names.bullPrefix,
      concurrency: work.concurrency ?? DEFAULT_CONCURRENCY,
      drainDelay: IDLE_WAIT_S,
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
