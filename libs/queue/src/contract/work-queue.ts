import type { Fairness } from "./fairness.ts";
import type { KeyState } from "./key-state.ts";
import type { Pause } from "./pause.ts";
import type { QueueControl } from "./queue-control.ts";
import type {
  KonvergeError,
  BackoffPolicy,
  ObjectKey,
  Outcome,
  OutcomeKind,
  Trigger,
} from "@konverge/core";

/** What a request is for; decides its place in the queue and whether it may wake a key that backs off. */
export type RequestClass = "interactive" | "event" | "retry" | "resync";

export interface RequestOptions {
  /** Default `event`. */
  readonly class?: RequestClass;
  /**
   * True when something changed that the key does not know yet, or a person asks: it wakes a key from its backoff.
   * Default: true for `interactive` and `event`, else false.
   */
  readonly news?: boolean;
}

/** An acknowledged request. Finished when an attempt that began at or after `number` has ended for good. */
export interface AcceptedRequest {
  /** Key and number, fit for a URL path after percent-encoding. */
  readonly id: string;
  readonly key: string;
  readonly number: number;
  /** True when the request joined one that was already waiting. */
  readonly coalesced: boolean;
}

/** What looks on at one request. */
export interface RequestObserver {
  /** W3C trace context to go on with in place of the trigger's. */
  readonly traceparent?: string | undefined;
  /** Redis has the request, or does not. */
  readonly ended: (result: AcceptedRequest | Error) => void;
}

export interface RequestItem {
  readonly key: ObjectKey;
  readonly trigger: Trigger;
  readonly options?: RequestOptions;
}

/** What became of one of many requests. */
export type RequestResult =
  | { readonly kind: "accepted"; readonly accepted: AcceptedRequest }
  | { readonly kind: "refused"; readonly error: KonvergeError };

/** How a request stands. `attempt` is the one that finished it, or the last one so far. */
export interface RequestState {
  readonly id: string;
  readonly key: string;
  readonly phase: "waiting" | "running" | "finished";
  readonly outcome?: OutcomeKind;
  readonly attempts: number;
  readonly finishedAt?: string;
  readonly error?: { readonly code: string; readonly message: string };
  /** The pause that it waits for. */
  readonly paused?: Pause;
}

/** One run of the handler, as the queue hands it out. */
export interface AttemptLease {
  readonly key: ObjectKey;
  /** The key in its canonical text form. */
  readonly id: string;
  readonly epoch: number;
  /** Starts of this key since its last success, from 1. */
  readonly attempt: number;
  readonly failures: number;
  readonly conflicts: number;
  /** Triggers collected since the last attempt began, oldest first, capped. */
  readonly triggers: readonly Trigger[];
  /** Highest resourceVersion seen by the collected triggers, if they compare. */
  readonly floor?: string;
  /** When the oldest uncovered request was made, and when this attempt began; epoch ms. */
  readonly requestedAtMs: number;
  readonly startedAtMs: number;
  readonly class: RequestClass;
  /** W3C trace context of the caller's request, else of the oldest with one; the same in the retries, which have no triggers. */
  readonly traceparent?: string;
  /** Aborted with a reason when the lease is lost or the worker is killed. */
  readonly signal: AbortSignal;
}

/**
 * What the handler answers. The queue stores `record` (JSON, at most 16 KiB) with the attempt, under the same fence; as a
 * function it is told for how long the key waits because of this outcome, in ms.
 */
export interface AttemptEnd {
  readonly outcome: Outcome;
  readonly record?: string | ((backoffMs: number) => string);
}

/** What became of an attempt: `fenced` when another epoch had taken over, then nothing was stored. */
export interface AttemptClosed {
  readonly fenced: boolean;
  /** Delay until the key runs again because of this outcome, in ms. */
  readonly retryAfterMs?: number;
}

/** An attempt that never ended, and how many of its key there were in a row; from the second on the key backs off first. */
export interface LostAttempt {
  /** The key in its canonical text form. */
  readonly id: string;
  readonly consecutive: number;
  /** The search index has it; of a queue that is split it has not, since a script of a shard cannot reach it. */
  readonly isIndexed: boolean;
}

export interface QueueBackoffs {
  readonly conflict: BackoffPolicy;
  readonly failure: BackoffPolicy;
  readonly rejected: BackoffPolicy;
}

export interface WorkOptions {
  /** Attempts at once in this process, shared out over the shards: at least one each. Default 16. */
  readonly concurrency?: number;
  readonly backoffs?: QueueBackoffs;
  /**
   * What retries after failures may come to, per second over the fleet: the cap of `ladders.failure` grows with the number of
   * keys that wait, up to 1000 s, so that they stay below. Default: no bound.
   */
  readonly retriesPerSecond?: number;
  /** Failures in a row after which a key is dead. Default: never. */
  readonly maxFailures?: number;
  /** How namespaces share the queue. */
  readonly fairness?: Partial<Fairness>;
  /** Identifies this worker in records; unique per process. */
  readonly workerId: string;
  /** Runs one attempt. It must not throw: what the user's handler throws is an outcome. */
  readonly handle: (attempt: AttemptLease) => Promise<AttemptEnd>;
  /** Told after `end` was stored (or fenced). */
  readonly onClosed?: (attempt: AttemptLease, end: AttemptEnd, closed: AttemptClosed) => void;
  /** Told when an attempt is found that never ended: its worker died, or stood still for longer than its lease. */
  readonly onLost?: (lost: LostAttempt) => void;
  /** Told about errors of the queue itself, such as a lost connection. */
  readonly onError: (error: Error) => void;
  readonly random?: () => number;
}

/** A running consumer of one queue. */
export interface QueueWorker {
  /** Attempts running now. */
  readonly active: number;
  /** Takes nothing new until `resume`; running attempts go on. For as long as the API server may not be called. */
  pause(): void;
  resume(): void;
  /** Takes nothing new, waits for running attempts up to `graceMs`, aborts the rest, releases. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** Aborts running attempts at once; their keys run again elsewhere. */
  kill(): Promise<void>;
}

/** A stored attempt: `record` is what the handler answered; of a lost one, what the queue knows, as JSON. */
export interface StoredAttempt {
  /** Its epoch, which grows by one with every attempt of the key. */
  readonly id: string;
  readonly record: string;
  /** `lost`: its worker died, or lost the key and never said how it ended. */
  readonly outcome: OutcomeKind | "lost";
  readonly worker: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** The number of the last request that it covers. */
  readonly covered: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/**
 * The queue of one controller on one cluster. Requests for one key coalesce: at most one runs and one waits (P2), and an
 * acknowledged one is never lost (P1).
 */
export interface WorkQueue {
  readonly controller: string;
  readonly cluster: string;
  /** Pauses, dead letters, cancellation and search. */
  readonly control: QueueControl;
  /** Resolves once Redis has it. @throws KonvergeError `redis_unavailable`, `queue_full` */
  request(key: ObjectKey, trigger: Trigger, options?: RequestOptions): Promise<AcceptedRequest>;
  /**
   * Up to 1,000 requests, pipelined; one result per item, in order. What is refused keeps none of the others from being
   * accepted. @throws KonvergeError `invalid_request` for more than 1,000
   */
  requestMany(items: readonly RequestItem[]): Promise<RequestResult[]>;
  /** Requests `key` at `atMs` (epoch ms); the earliest of several wishes wins. */
  requestAt(key: ObjectKey, atMs: number): Promise<void>;
  /** @throws KonvergeError `not_found` for an id that was never given. */
  getRequest(id: string): Promise<RequestState>;
  /** Undefined for a key nobody ever requested. */
  getKey(key: ObjectKey): Promise<KeyState | undefined>;
  /** Newest first. */
  listAttempts(key: ObjectKey, options?: { readonly limit?: number }): Promise<StoredAttempt[]>;
  /** Jobs by state, for metrics: `waiting`, `active`, `delayed`. */
  counts(): Promise<{
    readonly waiting: number;
    readonly active: number;
    readonly delayed: number;
  }>;
  /** How long the key that starts next has been waiting, in ms; 0 when none waits. Few wait longer, and none for long. */
  headAgeMs(): Promise<number>;
  /**
   * Changes when Redis may have lost something: its data, or with a restart or a failover its last writes. Whoever made
   * requests then makes them again. Costs one read per shard.
   */
  incarnation(): Promise<string>;
  work(options: WorkOptions): QueueWorker;
  close(): Promise<void>;
}
