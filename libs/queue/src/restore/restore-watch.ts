import { CLUSTER_KINDS, ensureError, sleepMs, type RestoreKind } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { HEARTBEAT_MS } from "../fleet/live-workers.ts";
import { advanceProgressScript } from "../scripts/advance-progress.ts";
import { noteProgressScript, type NotedProgress } from "../scripts/note-progress.ts";
import {
  heldQueues,
  kindsIn,
  progressKeys,
  restoreKey,
  RESTORE_TOLERANCE_MS,
  tokensRestoreKey,
  type QueueKind,
} from "./restore-state.ts";

/** Time between two records outside of Redis, in ms. */
const RECORD_MS = 30_000;
/** Longest wait for the last record, in ms. */
const LAST_RECORD_MS = 1_000;

/** Progress as recorded outside of Redis. */
export interface RecordedProgress {
  /** Random id of the data. It survives a loss of all data while a worker or a record remembers it. */
  readonly id: string;
  readonly progressMs: number;
  /** True if the record is recent, so that a Redis without data may be a second one. */
  readonly isInUse?: boolean;
}

/** Rejects work of a queue in a Redis that was restored. */
export interface RestoreFence {
  readonly kind: QueueKind;
  /** The progress below which the data was restored, in epoch ms; 0 if unknown. */
  oldestMs(): number;
  /** Called when the queue has rejected work. */
  onHeld(): void;
}

export interface RestoreWatchOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly cluster: string;
  readonly shards: number;
  readonly workerId: string;
  /** Default 1 minute. */
  readonly toleranceMs?: number;
  /** Stores the progress outside of Redis, about every 30 s by one of all workers. */
  readonly record?: (progress: RecordedProgress) => Promise<void>;
  readonly onError: (error: Error) => void;
  /** Called when the held kinds change. */
  readonly onChanged: (held: readonly RestoreKind[]) => void;
}

/**
 * Advances the progress of a cluster's data in Redis, and detects that Redis was restored from a backup: its progress is then lower
 * than this process, or the record outside of Redis, remembers.
 */
export interface RestoreWatch {
  /** Compares the data with the record before any work is taken. @throws KonvergeError `redis_unavailable` */
  start(recorded: RecordedProgress | undefined): Promise<void>;
  /** The kinds that an operator has not accepted yet. */
  readonly held: readonly RestoreKind[];
  /** Resolves with true if work of this kind may start, after a check that is at most a second old. */
  mayStart(kind: QueueKind): Promise<boolean>;
  /** Calls the listener with true while work of this kind may start; at once, and after each change. Returns a function that ends it. */
  follow(kind: QueueKind, listener: (isOpen: boolean) => void): () => void;
  fence(kind: QueueKind): RestoreFence;
  close(): Promise<void>;
}

/** Longest age of a check before a schedule starts a run, in ms. */
const CHECKED_MS = 1_000;

export function openRestoreWatch(options: RestoreWatchOptions): RestoreWatch {
  return new ProgressWatch(options);
}

class ProgressWatch implements RestoreWatch {
  readonly #options: RestoreWatchOptions;
  readonly #redis: RedisClient;
  readonly #toleranceMs: number;
  readonly #parts: readonly string[];
  readonly #listeners = new Set<(held: readonly RestoreKind[]) => void>();
  /** The highest progress that this process has seen. */
  #knownMs = 0;
  #id: string = crypto.randomUUID();
  #held: readonly RestoreKind[] = [];
  #last: RecordedProgress | undefined;
  #checkedAtMs = -Infinity;
  #noting: Promise<void> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: RestoreWatchOptions) {
    const { redis, prefix, cluster, shards, toleranceMs = RESTORE_TOLERANCE_MS, onError } = options;
    this.#options = options;
    this.#toleranceMs = toleranceMs;
    this.#parts = progressKeys(prefix, cluster, shards);
    this.#redis = openProducer(redis);
    this.#redis.on("error", onError);
  }

  get held(): readonly RestoreKind[] {
    return this.#held;
  }

  async start(recorded: RecordedProgress | undefined): Promise<void> {
    if (recorded?.isInUse === false) this.#id = recorded.id;
    await this.#note(recorded);
    const { onError } = this.#options;
    this.#timer = setInterval(
      () => {
        this.#check().catch((error: unknown) => onError(ensureError(error)));
      },
      // The progress of the queues is always behind by less than the tolerance.
      Math.min(HEARTBEAT_MS, this.#toleranceMs / 2),
    );
  }

  async mayStart(kind: QueueKind): Promise<boolean> {
    if (performance.now() - this.#checkedAtMs > CHECKED_MS) await this.#check();
    return !heldQueues(this.#held).includes(kind);
  }

  follow(kind: QueueKind, listener: (isOpen: boolean) => void): () => void {
    let isOpen: boolean | undefined;
    const notify = () => {
      const next = !heldQueues(this.#held).includes(kind);
      if (next === isOpen) return;
      isOpen = next;
      listener(next);
    };
    this.#listeners.add(notify);
    notify();
    return () => this.#listeners.delete(notify);
  }

  fence(kind: QueueKind): RestoreFence {
    return {
      kind,
      oldestMs: () => this.#oldestMs(),
      onHeld: () => {
        this.#check().catch((error: unknown) => this.#options.onError(ensureError(error)));
      },
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#noting?.catch(() => undefined);
    // A restore begins with the end of all workers: the record must not be older than that.
    if (this.#timer !== undefined && this.#redis.status === "ready") {
      await Promise.race([this.#record(this.#last), sleepMs(LAST_RECORD_MS)]);
    }
    await closeRedis(this.#redis);
  }

  #oldestMs(recordedMs = 0): number {
    return Math.max(0, Math.max(this.#knownMs, recordedMs) - this.#toleranceMs);
  }

  /** One check at a time. */
  async #check(): Promise<void> {
    this.#noting ??= this.#note(undefined).finally(() => {
      this.#noting = undefined;
    });
    await this.#noting;
  }

  async #note(recorded: RecordedProgress | undefined): Promise<void> {
    const { prefix, cluster } = this.#options;
    const noted = await this.#noteIn(restoreKey(prefix, cluster), { recorded });
    this.#id = noted.id;
    this.#setHeld(kindsIn(noted.held));
    await this.#noteTokens(recorded, noted);
    const isSameData = recorded !== undefined && recorded.id === noted.id;
    // The queues advance only if the cluster is not held: other processes then detect the restore as well.
    await this.#advance(noted, isSameData ? recorded.progressMs : 0);
    this.#knownMs = noted.progressMs;
    this.#last = { id: noted.id, progressMs: noted.progressMs };
    this.#checkedAtMs = performance.now();
    if (noted.isDue) await this.#record(this.#last);
  }

  /** The tokens can be on a node of a Redis Cluster with another clock, so their progress is at least that of the cluster. */
  async #noteTokens(
    recorded: RecordedProgress | undefined,
    { progressMs: atLeast }: NotedProgress,
  ): Promise<void> {
    const state = tokensRestoreKey(this.#options.prefix);
    await this.#noteIn(state, { recorded, kinds: "tokens", atLeast });
  }

  async #noteIn(
    state: string,
    {
      recorded,
      kinds = CLUSTER_KINDS.join(" "),
      isPartial = false,
      atLeast = 0,
    }: {
      readonly recorded?: RecordedProgress | undefined;
      readonly kinds?: string;
      readonly isPartial?: boolean;
      readonly atLeast?: number;
    },
  ): Promise<NotedProgress> {
    const { workerId, record } = this.#options;
    return await withRedis(this.#redis, () =>
      runScript(this.#redis, noteProgressScript, {
        keys: { state },
        args: {
          known: Math.max(this.#knownMs, recorded?.progressMs ?? 0),
          knownId: recorded?.id ?? "",
          tolerance: this.#toleranceMs,
          isPartial,
          atLeast,
          newId: this.#id,
          kinds,
          worker: workerId,
          recordMs: record === undefined || kinds === "tokens" ? 0 : RECORD_MS,
        },
      }),
    );
  }

  /**
   * Advances the progress of the parts, or holds the cluster if only a part was restored. A part is behind what this process or the
   * record has seen in all parts: the progress of the cluster alone proves nothing, since a process can end before it advances the parts.
   */
  async #advance({ progressMs }: NotedProgress, recordedMs: number): Promise<void> {
    const closed = heldQueues(this.#held);
    const open = (["keys", "runs"] as const).filter((kind) => !closed.includes(kind));
    if (open.length === 0) return;
    const oldest = this.#oldestMs(recordedMs);
    for (const progress of this.#parts) {
      const isRecent = await withRedis(this.#redis, () =>
        runScript(this.#redis, advanceProgressScript, {
          keys: { progress },
          args: { at: progressMs, oldest },
          each: open.map((kind) => ({ kind })),
        }),
      );
      if (isRecent) continue;
      const { prefix, cluster } = this.#options;
      const noted = await this.#noteIn(restoreKey(prefix, cluster), { isPartial: true });
      this.#setHeld(kindsIn(noted.held));
      return;
    }
  }

  #setHeld(held: readonly RestoreKind[]): void {
    const isSame = held.join(" ") === this.#held.join(" ");
    this.#held = held;
    if (isSame) return;
    this.#options.onChanged(held);
    for (const notify of this.#listeners) notify(held);
  }

  async #record(progress: RecordedProgress | undefined): Promise<void> {
    if (progress === undefined) return;
    try {
      await this.#options.record?.(progress);
    } catch (error) {
      this.#options.onError(ensureError(error));
    }
  }
}
