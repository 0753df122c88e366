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
  readonly owner: string;
  readonly askedAtMs: number;
  readonly answer: ReturnType<AttemptStore["beginNext"]>;
}

export function createBeginAhead(store: AttemptStore, nextOwner: () => string): BeginAhead {
  const asked = new Map<string, Asked>();

  const ask = (token: string, finishing: string) => {
    const owner = nextOwner();
    const answer = store.beginNext(token, finishing, owner);
    const entry = { owner, askedAtMs: performance.now(), answer };
    asked.set(token, entry);
    const forget = () => {
      if (asked.get(token) === entry) asked.delete(token);
    };
    // The owner of a failed call is kept, because the call may have begun an attempt.
    answer.then((found) => found ?? forget()).catch(() => undefined);
  };

  return {
    follow(job, token, onAsked) {
      const finish = job.moveToCompleted.bind(job);
      job.moveToCompleted = (value, ownToken, fetchNext) => {
        const finished = finish(value, ownToken, fetchNext);
        // The finish is sent by the next tick: it waits for promises only.
        process.nextTick(() => {
          if (fetchNext !== false) ask(token, job.id ?? "");
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
        if (found === undefined || found.jobId !== job.id) return undefined;
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
