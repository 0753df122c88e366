import { sleepMs } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import type { MissedChanges, Reached } from "./missed-changes.ts";

/** What a leader has requested, as stored in Redis. */
interface Progress {
  /** Changes with every write. */
  readonly serial: string;
  /** Digest of the definition and the build of the controller. */
  readonly build: string;
  /** Of Redis. */
  readonly incarnation: string;
  /** All changes up to these versions were requested, and Redis accepted the requests. */
  readonly reached: Reached;
}

export interface LeaderProgressOptions {
  readonly queue: Pick<WorkQueue, "accepted" | "readProgress" | "writeProgress">;
  readonly missed: MissedChanges;
  readonly build: string;
  /** The versions that the watches of this process have reached; undefined before the first lists. */
  readonly reached: () => Reached | undefined;
  readonly onError: (error: Error) => void;
  /** Time between two writes, in ms. Default 5 s. */
  readonly everyMs?: number;
}

/** Lets a new leader continue where the last one stopped, instead of enqueuing every object. */
export interface LeaderProgress {
  /** Begins to keep changes for a later leadership. */
  follow(): Promise<void>;
  /**
   * Requests what the last leader has not requested. Returns false if this is not known, so that every object must be enqueued.
   * @param incarnation of Redis
   * @param signal of this leadership
   * @throws the reason of the signal
   */
  resume(incarnation: string, signal: AbortSignal): Promise<boolean>;
  /** Stores the progress of this leader until `signal` aborts. Every earlier change must have been submitted. */
  report(incarnation: string, signal: AbortSignal): Promise<void>;
}

export function createLeaderProgress({
  queue,
  missed,
  build,
  reached,
  onError,
  everyMs = 5_000,
}: LeaderProgressOptions): LeaderProgress {
  /**
   * The progress when this process began to follow. Only a leader that wrote since then ran beside this process, so no restart
   * with other code lies between.
   */
  let before: { readonly serial: string | undefined } | undefined;
  return {
    async follow() {
      before = undefined;
      const now = reached();
      if (now === undefined) return missed.end();
      missed.begin(now);
      before = { serial: parseProgress(await queue.readProgress())?.serial };
    },
    async resume(incarnation, signal) {
      const last = parseProgress(await queue.readProgress());
      // When a leadership ends, `follow` keeps changes again. They must not be dropped here.
      signal.throwIfAborted();
      const isKnown =
        before !== undefined &&
        last !== undefined &&
        last.serial !== before.serial &&
        last.build === build &&
        last.incarnation === incarnation;
      const requests = isKnown ? missed.after(last.reached) : undefined;
      missed.end();
      for (const request of requests ?? []) request();
      return requests !== undefined;
    },
    async report(incarnation, signal) {
      while (!signal.aborted) {
        const now = reached();
        try {
          await queue.accepted(signal);
          const progress = { serial: crypto.randomUUID(), build, incarnation, reached: now };
          if (now !== undefined) await queue.writeProgress(JSON.stringify(progress));
        } catch (error) {
          // The next leader then repeats more.
          if (!signal.aborted) onError(error as Error);
        }
        await sleepMs(everyMs, signal);
      }
    },
  };
}

function parseProgress(text: string | undefined): Progress | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Progress);
  } catch {
    // Another version wrote it.
    return undefined;
  }
}
