import { ensureError } from "@konverge/core";
import {
  createRedisBackend,
  raw2NextJobData,
  type BackendFactory,
  type Job,
  type JobJson,
  type RedisQueueBackend,
} from "bullmq";
import type { Handed } from "@konverge/redis";
import { JOB_NAME, jobOptions } from "../scripts/add-job.ts";
import type { Begun } from "../scripts/begun.ts";
import type { NextJob } from "../scripts/advance.ts";
import type { Ended } from "../scripts/end.ts";
import type { JobPayload } from "../keys/job-payload.ts";
import type { AttemptStore, EndCall } from "./attempt-store.ts";
import type { JobWait } from "./job-waits.ts";

/** An attempt that began before BullMQ handed out its job. */
export interface BegunAhead {
  readonly id: string;
  readonly owner: string;
  readonly askedAtMs: number;
  readonly begun: Begun;
}

/**
 * Combines the end of an attempt, BullMQ's finish of its job, its fetch of the next job and the begin of its attempt.
 * Slots that end in one turn of the event loop share a call.
 */
export interface SlotBackend {
  /** For BullMQ's worker. */
  readonly factory: BackendFactory<RedisQueueBackend>;
  /**
   * Stores the end of an attempt whose processor is about to return, together with the finish of its job. If BullMQ
   * does not finish the job in this turn, because its worker is closed, the end is stored alone.
   */
  end(job: Job<JobPayload>, call: EndCall): Handed<Ended>;
  /** Returns the attempt that was begun for this job, if any. */
  take(job: Job<JobPayload>, token: string | undefined): BegunAhead | undefined;
  /** Returns the attempts that were begun and never taken, to be released. */
  rest(): BegunAhead[];
}

export interface SlotBackendOptions {
  readonly store: Pick<AttemptStore, "end" | "advance">;
  readonly nextOwner: () => string;
  /** Replaces BullMQ's wait for jobs and its connection. */
  readonly jobWait?: JobWait | undefined;
  /** Asked at intervals whether BullMQ looks for jobs of lost workers. Default: it always does. */
  readonly looksForLost?: () => boolean;
}

interface Ending {
  readonly call: EndCall;
  readonly stored: PromiseWithResolvers<Ended>;
}

type Finish = RedisQueueBackend["moveToCompleted"];

export function createSlotBackend({
  store,
  nextOwner,
  jobWait,
  looksForLost = () => true,
}: SlotBackendOptions): SlotBackend {
  const endings = new Map<unknown, Ending>();
  const begun = new Map<string, { readonly jobId: string; readonly early: BegunAhead }>();

  const takeEnding = (job: unknown) => {
    const ending = endings.get(job);
    endings.delete(job);
    return ending;
  };
  const handOut = (
    next: NextJob,
    {
      token,
      ...asked
    }: { readonly token: string; readonly owner: string; readonly askedAtMs: number },
  ) => {
    const { jobId, stored } = next;
    const job = jobOf(next);
    if (next.begun !== undefined) {
      const id = "id" in stored ? stored.id : (JSON.parse(job.data) as JobPayload).key;
      begun.set(token, { jobId, early: { id, ...asked, begun: next.begun } });
    }
    return [job, jobId, 0, 0];
  };
  const finishWith = (finish: Finish, closing: () => boolean): Finish =>
    async function finishCombined(job, value, remove, token, fetchNext) {
      const ending = takeEnding(job);
      if (ending === undefined) return await finish(job, value, remove, token, fetchNext);
      const { call, stored } = ending;
      const owner = fetchNext && !closing() ? nextOwner() : undefined;
      const slot = { token, owner: owner ?? "", askedAtMs: performance.now() };
      let advanced;
      try {
        advanced = await store.advance({ end: call, jobId: job.id ?? "", token, nextOwner: owner });
      } catch (error) {
        stored.reject(ensureError(error));
        return await finish(job, value, remove, token, fetchNext);
      }
      const { ended, isFinished, next, delayedUntilMs } = advanced;
      stored.resolve(ended);
      if (!isFinished) return await finish(job, value, remove, token, fetchNext);
      const none = owner === undefined ? undefined : [null, 0, 0, delayedUntilMs];
      return {
        result: next === undefined ? none : handOut(next, slot),
        finishedOn: Date.now(),
      };
    };

  return {
    factory: (name, options, how) => {
      const backend = openBackend(jobWait, name, options, how);
      const finish: Finish = backend.moveToCompleted.bind(backend);
      const findStalled = backend.moveStalledJobsToWait.bind(backend);
      backend.moveStalledJobsToWait = async () => (looksForLost() ? await findStalled() : []);
      backend.moveToCompleted = finishWith(finish, () => backend.closing !== undefined);
      return backend;
    },
    end(job, call) {
      if (!isOurs(job)) return store.end(call);
      const ending = { call, stored: Promise.withResolvers<Ended>() };
      endings.set(job, ending);
      setImmediate(() => {
        if (takeEnding(job) === undefined) return;
        store.end(call).answer.then(ending.stored.resolve, ending.stored.reject);
      });
      return { sent: Promise.resolve(), answer: ending.stored.promise };
    },
    take(job, token) {
      const entry = token === undefined ? undefined : begun.get(token);
      if (entry === undefined || token === undefined) return undefined;
      begun.delete(token);
      return entry.jobId === job.id ? entry.early : undefined;
    },
    rest() {
      const left = [...begun.values()].map(({ early }) => early);
      begun.clear();
      return left;
    },
  };
}

/** Returns BullMQ's backend, which opens no connection to wait for jobs if that is done here. */
function openBackend(
  jobWait: JobWait | undefined,
  ...[name, options, how]: Parameters<BackendFactory<RedisQueueBackend>>
): RedisQueueBackend {
  if (jobWait === undefined) return createRedisBackend(name, options, how);
  const backend = createRedisBackend(name, options, { ...how, withBlockingConnection: false });
  backend.waitForJob = async (timeoutS) => (await jobWait.wait(timeoutS * 1_000)) ?? null;
  backend.disconnectBlocking = async () => jobWait.cancel();
  return backend;
}

/** Returns a job as BullMQ's worker expects it. */
function jobOf({ jobId, stored }: NextJob): JobJson {
  if (!("id" in stored)) return raw2NextJobData([stored, jobId, 0, 0])[0] as JobJson;
  const { id, priority, timestamp } = stored;
  return {
    id: jobId,
    name: JOB_NAME,
    data: JSON.stringify({ key: id } satisfies JobPayload),
    opts: jobOptions(),
    progress: 0,
    delay: 0,
    priority,
    timestamp,
    attemptsStarted: 1,
    attemptsMade: 0,
    stalledCounter: 0,
    processedOn: Date.now(),
    deduplicationId: id,
    failedReason: "",
    returnvalue: "null",
  };
}

/** True for a job that BullMQ removes at its end without further effects. Other clients can add jobs with any options. */
function isOurs({ id, data, deduplicationId, parentKey, repeatJobKey, opts }: Job<JobPayload>) {
  return (
    id !== undefined &&
    deduplicationId === data.key &&
    parentKey === undefined &&
    repeatJobKey === undefined &&
    opts.removeOnComplete === undefined
  );
}
