import {
  formatKey,
  KonvergeError,
  parseTraceparent,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import type { JobsOptions, Queue } from "bullmq";
import { type RedisClient, runScript } from "@konverge/redis";
import type { JobPayload } from "./job-payload.ts";
import { isNewsByDefault, rankOf } from "./request-class.ts";
import { formatRequestId } from "./request-id.ts";
import type { QueueNames } from "./queue-names.ts";
import { requestScript } from "./scripts/request.ts";
import type { AcceptedRequest, RequestOptions } from "./work-queue.ts";

/** Triggers kept between two attempts. */
const TRIGGERS_KEPT = 20;
/** Characters of each text of a trigger; texts are for people and come from anywhere. */
const MAX_TEXT = 500;
/** Characters of a resourceVersion; of those that compare none has more than 20. */
const MAX_VERSION = 100;

/** Name of the custom backoff: the delay is drawn from the key's counters, not from BullMQ's. */
export const BACKOFF_TYPE = "konverge";

export type Requester = (
  key: ObjectKey,
  trigger: Trigger,
  options?: RequestOptions & {
    /** True for what may never be refused, whoever asks. */
    readonly unbounded?: boolean;
  },
) => Promise<AcceptedRequest>;

/** Whose requests are refused when the queue is full; all others' would be lost work. */
const FROM_OUTSIDE: ReadonlySet<Trigger["kind"]> = new Set(["http", "cli"]);
/** When to come again, in ms. */
const FULL_RETRY_MS = 5_000;

/**
 * Requests a key: first its hash, then the job. In this order a job that is about to start sees the request; when the
 * second part fails, nothing was acknowledged and the number is only skipped.
 */
export function createRequester(
  redis: RedisClient,
  queue: Queue,
  names: QueueNames,
  maxWaiting: number = Infinity,
): Requester {
  return async (key, trigger, options = {}) => {
    const { class: requestClass = "event", news, unbounded = false } = options;
    const id = formatKey(key);
    const bounded =
      maxWaiting !== Infinity &&
      !unbounded &&
      requestClass !== "retry" &&
      FROM_OUTSIDE.has(trigger.kind);
    const isNews = news ?? isNewsByDefault(requestClass);
    const told = clipped(trigger);
    const answer = (await runScript(
      redis,
      requestScript,
      [
        names.keyHash(id),
        names.fair,
        names.ageing,
        names.index,
        names.dead,
        ...(bounded ? [names.parked, names.bullWaiting] : []),
      ],
      [
        rankOf(requestClass),
        isNews ? 1 : 0,
        JSON.stringify(told),
        told.resourceVersion ?? "",
        told.generation ?? "",
        TRIGGERS_KEPT,
        id,
        bounded ? maxWaiting : "",
      ],
    )) as [number, number, number, number, number, number];
    const [number, joined, priority, wake, raised, nowMs] = answer;
    if (number === 0) {
      throw new KonvergeError(
        "queue_full",
        `${joined} keys wait for controller "${key.controller}", and at most ${maxWaiting} may; try again later`,
        { retryAfterMs: FULL_RETRY_MS },
      );
    }
    const job = await queue.add("reconcile", { key: id } satisfies JobPayload, {
      ...JOB_OPTIONS,
      priority,
      // Redis's time, not ours: a job that is woken is due at this time.
      timestamp: nowMs,
      deduplication: { id, keepLastIfActive: true, reschedule: wake === 1 },
    });
    if (raised === 1) await raise(queue, job.id, priority);
    return { id: formatRequestId(id, number), key: id, number, coalesced: joined === 1 };
  };
}

/**
 * `attempts` is the largest integer that BullMQ stores without harm; giving up is decided by the key's counters. A failed
 * job's text says little on purpose: what happened is in the attempt's record. What is the same for all jobs is said by the
 * worker, since every job carries its options through Redis and back.
 */
const JOB_OPTIONS: JobsOptions = {
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { type: BACKOFF_TYPE },
  stackTraceLimit: 1,
};

/** The better class of a request that joined a waiting job: BullMQ keeps the first one's priority. */
async function raise(queue: Queue, jobId: string | undefined, priority: number): Promise<void> {
  if (jobId === undefined) return;
  try {
    await queue.getBackend().changePriority(jobId, priority);
  } catch (error) {
    // The job has ended meanwhile; a parked follow-up has the merged priority already.
    if (!(error instanceof Error && /missing key/i.test(error.message))) throw error;
  }
}

function clipped(trigger: Trigger): Trigger {
  const {
    kind,
    by,
    reason,
    traceparent,
    resourceVersion = "",
    generation,
    version = "",
    seen,
  } = trigger;
  return {
    // First, since a script looks for it and for the trace behind it.
    kind,
    ...(resourceVersion === "" || resourceVersion.length > MAX_VERSION ? {} : { resourceVersion }),
    ...(version === "" || version.length > MAX_VERSION ? {} : { version }),
    // Scripts keep it in a line of its own.
    ...(Number.isSafeInteger(generation) ? { generation } : {}),
    ...(traceparent === undefined || parseTraceparent(traceparent) === undefined
      ? {}
      : { traceparent }),
    ...(by === undefined ? {} : { by: by.slice(0, MAX_TEXT) }),
    ...(reason === undefined ? {} : { reason: reason.slice(0, MAX_TEXT) }),
    // From watches alone, never from outside.
    ...(seen === undefined ? {} : { seen }),
  };
}
