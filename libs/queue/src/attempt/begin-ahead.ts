import type { Job } from "bullmq";
import type { AttemptStore } from "./attempt-store.ts";
import type { Begun } from "../scripts/begun.ts";
import type { JobPayload } from "../keys/job-payload.ts";

/** A job whose attempt began before BullMQ returned the job. */
export interface BegunAhead {
  readonly id: string;
  readonly owner: string;
  readonly askedAtMs: number;
  readonly begun: Begun;
}

/**
 * Begins a worker's next job together with the finish of the previous one. BullMQ finishes a job and fetches the next in one
 * call; a second call on the same connection begins the fetched job, so both results arrive together. This saves time only:
 * any other job begins as usual.
 */
export interface BeginAhead {
  /** Sends the begin of the next job after the finish of `job`. Calls `onAsked` when both were sent. */
  follow(job: Job<JobPayload>, token: string, onAsked: () => void): void;
  /** Returns the attempt that was begun for this job, if any. */
  take(job: Job<JobPayload>, token: string | undefined): Promise<BegunAhead | undefined>;
  /** Returns the attempts that were begun and never taken, to be released. */
  rest(): Promise<BegunAhead[]>;
}

interface Asked {
  readonly token: string;
  readonly owner: string;
  readonly askedAtMs: number;
  readonly answer: ReturnType<AttemptStore["beginNext"]>;
}

export interface BeginAheadOptions {
  readonly store: Pick<AttemptStore, "begin" | "beginNext">;
  readonly nextOwner: () => string;
  /** Releases an attempt whose job BullMQ did not return to its slot: the connection was cut meanwhile. */
  readonly giveBack: (early: BegunAhead) => void;
}

export function createBeginAhead({ store, nextOwner, giveBack }: BeginAheadOptions): BeginAhead {
  const asked = new Map<string, Asked>();

  const forget = (entry: Asked) => {
    if (asked.get(entry.token) === entry) asked.delete(entry.token);
  };
  const ask = (token: string, finishing: string, owner: string): Asked => {
    const answer = store.beginNext(token, finishing, owner);
    const entry = { token, owner, askedAtMs: performance.now(), answer };
    asked.set(token, entry);
    // The owner of a failed call is kept, because the call may have begun an attempt.
    answer.then((found) => found ?? forget(entry)).catch(() => undefined);
    return entry;
  };
  const release = async (entry: Asked) => {
    forget(entry);
    const { owner, askedAtMs } = entry;
    const found = await entry.answer.catch(() => undefined);
    if (found !== undefined) giveBack({ id: found.id, owner, askedAtMs, begun: found.begun });
  };
  const keepIfReturned = async (entry: Asked, finished: Promise<unknown>) => {
    const next = await finished.catch(() => undefined);
    if (!hasJob(next)) await release(entry);
  };

  return {
    follow(job, token, onAsked) {
      const finish = job.moveToCompleted.bind(job);
      // BullMQ repeats a failed finish. The same owner then gets the attempt that the lost answer began.
      const owner = nextOwner();
      job.moveToCompleted = (value, ownToken, fetchNext) => {
        const finished = finish(value, ownToken, fetchNext);
        // The finish is sent by the next tick: it waits for promises only.
        process.nextTick(() => {
          if (fetchNext !== false) void keepIfReturned(ask(token, job.id ?? "", owner), finished);
          onAsked();
        });
        return finished;
      };
    },
    async take(job, token) {
      const entry = token === undefined ? undefined : asked.get(token);
      if (entry === undefined || token === undefined) return undefined;
      const { owner, askedAtMs } = entry;
      const id = job.data.key;
      try {
        const found = await entry.answer;
        if (found === undefined) return undefined;
        if (found.jobId !== job.id) {
          await release(entry);
          return undefined;
        }
        asked.delete(token);
        return { id, owner, askedAtMs, begun: found.begun };
      } catch {
        // The attempt may have begun: the same owner gets the same answer again.
        asked.delete(token);
        return { id, owner, askedAtMs, begun: await store.begin(id, owner) };
      }
    },
    async rest() {
      const left = await Promise.all(
        [...asked.values()].map(async ({ owner, askedAtMs, answer }) => {
          const found = await answer.catch(() => undefined);
          return found === undefined
            ? []
            : [{ id: found.id, owner, askedAtMs, begun: found.begun }];
        }),
      );
      asked.clear();
      return left.flat();
    },
  };
}

/** True if BullMQ's answer to a finish contains the next job: an array of its data and id, among others. */
function hasJob(next: unknown): boolean {
  return Array.isArray(next) && Boolean(next[1]);
}
