import type { Job } from "bullmq";
import type { AttemptStore } from "./attempt-store.ts";
import type { Begun } from "../scripts/begun.ts";
import type { JobPayload } from "../keys/job-payload.ts";

/** A job whose attempt began before BullMQ handed it out. */
export interface BegunAhead {
  readonly id: string;
  readonly owner: string;
  readonly askedAtMs: number;
  readonly begun: Begun;
}

/**
 * Begins a worker's next job along with the finish of the one before it. BullMQ finishes a job and fetches the next in one
 * call; a second call right behind it, on the same connection, begins what was fetched, so that both answers arrive
 * together. It changes nothing but the time: whatever is not found ahead is begun as always.
 */
export interface BeginAhead {
  /** From now on the finish of `job` is followed by the begin of the next; `onAsked` is told when both are on their way. */
  follow(job: Job<JobPayload>, token: string, onAsked: () => void): void;
  /** What was begun for this job, if anything was. */
  take(job: Job<JobPayload>, token: string | undefined): Promise<BegunAhead | undefined>;
  /** What was begun and never handed out, so that it can be given back. */
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
    // Of a call that failed the owner is kept, since it may have begun something.
    answer.then((found) => found ?? forget()).catch(() => undefined);
  };

  return {
    follow(job, token, onAsked) {
      const finish = job.moveToCompleted.bind(job);
      job.moveToCompleted = (value, ownToken, fetchNext) => {
        const finished = finish(value, ownToken, fetchNext);
        // By the next tick the finish is on its way: it waits for promises only.
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
        // Whether it was begun nobody knows: the same owner is told the same again.
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
