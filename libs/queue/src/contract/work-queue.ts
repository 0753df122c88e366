import type { Fairness } from "./fairness.ts";
import type { Quarantine } from "./quarantine.ts";
import type { KeyState } from "./key-state.ts";
import type { Pause } from "./pause.ts";
import type { QueueControl } from "./queue-control.ts";
import type {
  BackoffPolicy,
  KonvergeError,
  ObjectKey,
  Outcome,
  OutcomeKind,
  TimeSpan,
  Trigger,
} from "@konverge/core";

/**
 * The urgency of a request: of a user, of a change, of a retry, and of work that can wait, such as resyncs. Determines its place
 * in the queue, and whether it can end a backoff. Only an `interactive` request releases a dead-lettered key by itself.
 */
export type RequestClass = "interactive" | "event" | "retry" | "background";

export interface RequestOptions {
  /** Default `event`. */
  readonly class?: RequestClass;
  /**
   * True for a new event or a user request, which ends a backoff.
   * Default: true for `interactive` and `event`, else false.
   */
  readonly news?: boolean;
  /**
   * The uid of the reconciled object, if the requester saw it. With the trigger's generation, or its resourceVersion if the kind
   * has no generation, it decides whether a dead-lettered key runs again.
   */
  readonly uid?: string;
  /** True if the requester saw that the object is deleted, or that none of the key's name exists. */
  readonly isDeleted?: boolean;
}

/** An acknowledged request. Finished when an attempt that began at or after `number` has a final outcome. */
export interface AcceptedRequest {
  /** Key and number; percent-encode it for URL paths. */
  readonly id: string;
  readonly key: string;
  readonly number: number;
  /** True if the request joined a waiting one. */
  readonly coalesced: boolean;
}

/** Observes one request. */
export interface RequestObserver {
  /** W3C trace context that replaces the trigger's. */
  readonly traceparent?: string | undefined;
  /** Receives the acknowledgement or the error. */
  readonly ended: (result: AcceptedRequest | Error) => void;
}

export interface RequestItem {
  readonly key: ObjectKey;
  readonly trigger: Trigger;
  readonly options?: RequestOptions;
}

/** The result of one of many requests. */
export type RequestResult =
  | { readonly kind: "accepted"; readonly accepted: AcceptedRequest }
  | { readonly kind: "refused"; readonly error: KonvergeError };

/** The state of a request. `outcome` and `error` are those of its final or latest attempt. */
export interface RequestState {
  readonly id: string;
  readonly key: string;
  readonly phase: "waiting" | "running" | "finished";
  readonly outcome?: OutcomeKind;
  readonly attempts: number;
  readonly finishedAt?: string;
  readonly error?: { readonly code: string; readonly message: string };
  /** The pause that blocks it. */
  readonly paused?: Pause;
}

/** One attempt that the queue hands out. */
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
  /** Highest resourceVersion of the collected triggers, if comparable. */
  readonly floor?: string;
  /** Times of the oldest uncovered request and of this attempt's start, in epoch ms. */
  readonly requestedAtMs: number;
  readonly startedAtMs: number;
  readonly class: RequestClass;
  /** True if resyncs, and other requests of class `background`, alone have requested the key since its last success. */
  readonly isResync: boolean;
  /** The times in which a pause kept the key from starting, oldest first. Some may be from before the requests. */
  readonly pauses: readonly TimeSpan[];
  /** W3C trace context of the caller's request, else of the oldest request with one. Retries keep it. */
  readonly traceparent?: string;
  /** Aborted with a reason if the lease is lost or the worker is killed. */
  readonly signal: AbortSignal;
  /**
   * Aborts `signal` if the lease has expired. Call it before each effect outside the process: after a suspension, the
   * handler may continue before the timer that aborts the signal.
   */
  readonly checkExpiry: () => void;
  /**
   * Stores log lines of the running attempt (a JSON array, at most 8 KiB), in place of earlier ones. They are part of the record
   * if the attempt is lost.
   */
  readonly keepLog: (lines: string) => Promise<void>;
}

/** The log lines that a running attempt has stored, as a JSON array. */
export interface RunningLog {
  readonly epoch: number;
  readonly lines: string;
}

/**
 * The result of the handler. The queue stores `record` (JSON, at most 16 KiB) with the attempt, under the same fence. A
 * function receives the delay of the key that follows from this outcome, in ms.
 */
export interface AttemptEnd {
  readonly outcome: Outcome;
  readonly record?: string | ((backoffMs: number) => string);
  /**
   * The versions of the reconciled object that the attempt read or wrote, for a kind without generation. Requests for these do
   * not release a key that the attempt dead-letters.
   */
  readonly versions?: readonly string[];
  /** How long the slot takes no other job after it has returned this one to the queue, in ms. Default 0. */
  readonly restMs?: number;
}

/** The stored result of an attempt. `fenced`: another epoch had taken over, so nothing was stored. */
export interface AttemptClosed {
  readonly fenced: boolean;
  /** Delay until the key runs again because of this outcome, in ms. */
  readonly retryAfterMs?: number;
}

/**
 * An attempt that never ended. From the second consecutive one on, the key backs off first and then runs alone in its process.
 */
export interface LostAttempt {
  /** The key in its canonical text form. */
  readonly id: string;
  readonly consecutive: number;
  /** True if the search index has it. False for sharded queues, whose scripts cannot reach the index. */
  readonly isIndexed: boolean;
}

export interface QueueBackoffs {
  readonly conflict: BackoffPolicy;
  readonly failure: BackoffPolicy;
  readonly rejected: BackoffPolicy;
}

export interface WorkOptions {
  /** Concurrent attempts in this process, divided over the shards with at least one each. Default 16. */
  readonly concurrency?: number;
  readonly backoffs?: QueueBackoffs;
  /**
   * Limit for retries after failures, per second over the fleet. The longest delay of `backoffs.failure` grows with the
   * number of waiting keys, up to 1000 s, to stay below the limit. Default: no limit.
   */
  readonly retriesPerSecond?: number;
  /** Consecutive failures after which a key is dead-lettered. Default: never. */
  readonly maxFailures?: number;
  /**
   * Consecutive lost attempts after which a key is dead-lettered: attempts whose worker crashed or was unresponsive for longer
   * than its lease. From the third on, they run alone in their process. Default: never. Below 3, a key is dead-lettered for the
   * crashes that another caused.
   */
  readonly maxLost?: number;
  /** Shared by the queues of a process. Default: a separate one per call. */
  readonly quarantine?: Quarantine;
  /** The shares of namespaces in the queue. */
  readonly fairness?: Partial<Fairness>;
  /** Identifies this worker in records; unique per process. */
  readonly workerId: string;
  /** Runs one attempt. Must not throw: an error of the user's handler is an outcome. */
  readonly handle: (attempt: AttemptLease) => Promise<AttemptEnd>;
  /** Called after `end` was stored or fenced. */
  readonly onClosed?: (attempt: AttemptLease, end: AttemptEnd, closed: AttemptClosed) => void;
  /** Called for an attempt that never ended: its worker crashed, or was unresponsive for longer than its lease. */
  readonly onLost?: (lost: LostAttempt) => void;
  /** Receives errors of the queue itself, such as a lost connection. */
  readonly onError: (error: Error) => void;
  readonly random?: () => number;
}

/** A running consumer of one queue. */
export interface QueueWorker {
  /** Attempts running now. */
  readonly active: number;
  /** Attempts that have ended since the start. */
  readonly finished: number;
  /** Takes no new jobs until `resume`; running attempts continue. Used while the circuit breaker is open. */
  pause(): void;
  resume(): void;
  /** Takes no new jobs, waits up to `graceMs` for running attempts, aborts the rest and closes. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** Aborts running attempts at once; their keys run again elsewhere. */
  kill(): Promise<void>;
}

/** A stored attempt. `record` is the handler's record, or for a lost attempt the queue's data as JSON. */
export interface StoredAttempt {
  /** Its epoch, which grows by one with every attempt of the key. */
  readonly id: string;
  readonly record: string;
  /** `lost`: its worker crashed, or lost the key before it stored an end. */
  readonly outcome: OutcomeKind | "lost";
  readonly worker: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Number of the last covered request. */
  readonly covered: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/** The state of a queue over all shards. */
export interface Backlog {
  /** All keys, without those of objects that were deleted long ago. */
  readonly keys: number;
  readonly deadLettered: number;
  /** Keys whose requests wait for the end of a pause. */
  readonly paused: number;
  /** Waiting time of the key at the queue head, in ms; 0 if none waits. */
  readonly headAgeMs: number;
  /** The same for the first key that was not requested by resyncs alone. */
  readonly changeAgeMs: number;
}

/**
 * The queue of one controller on one cluster. Requests for a key coalesce: at most one runs and one waits (P2). An
 * acknowledged request is never lost (P1).
 */
export interface WorkQueue {
  readonly controller: string;
  readonly cluster: string;
  /** Pauses, dead letters, cancellation and search. */
  readonly control: QueueControl;
  /** Resolves once Redis has stored the request. @throws KonvergeError `redis_unavailable`, `queue_full` */
  request(key: ObjectKey, trigger: Trigger, options?: RequestOptions): Promise<AcceptedRequest>;
  /**
   * Sends a request until Redis accepts it; errors go to `onError` of the queue. Different keys are sent concurrently, those
   * of one key in order. Resolves when Redis accepted or first refused it. Requests that still fail when the queue closes
   * are dropped: for callers that repeat their requests, such as leaders.
   */
  submit(key: ObjectKey, trigger: Trigger, options?: RequestOptions): Promise<void>;
  /**
   * Makes up to 1,000 requests, pipelined. Returns one result per item, in order; rejected items do not affect the others.
   * @throws KonvergeError `invalid_request` for more than 1,000
   */
  requestMany(items: readonly RequestItem[]): Promise<RequestResult[]>;
  /** Requests `key` at `atMs` (epoch ms). The earliest of several times is kept. */
  requestAt(key: ObjectKey, atMs: number): Promise<void>;
  /** @throws KonvergeError `not_found` for an unknown id. */
  getRequest(id: string): Promise<RequestState>;
  /** Undefined for a key that was never requested. */
  getKey(key: ObjectKey): Promise<KeyState | undefined>;
  /**
   * Returns, per key, the number of its last request if no attempt has begun since, else 0: a change during an attempt shows that the
   * key was requested. One round trip per shard.
   */
  waitingRequests(keys: readonly ObjectKey[]): Promise<number[]>;
  /**
   * Ends the lease of the running attempt with this epoch at once: its worker counts as lost, and the key runs elsewhere. Returns false
   * if that attempt no longer runs. Call it only if the attempt has ended itself by then, should its worker be alive.
   */
  abandon(key: ObjectKey, epoch: number): Promise<boolean>;
  /** Newest first. */
  listAttempts(key: ObjectKey, options?: { readonly limit?: number }): Promise<StoredAttempt[]>;
  /** Returns the last lines that an attempt has stored while it ran; it may have ended since. */
  runningLog(key: ObjectKey): Promise<RunningLog | undefined>;
  /** Returns the keys of the queue in pages, without those of deleted objects. @throws KonvergeError `redis_unavailable` */
  listKeys(): AsyncIterable<readonly ObjectKey[]>;
  /** Jobs by state, for metrics: `waiting`, `active`, `delayed`. */
  counts(): Promise<{
    readonly waiting: number;
    readonly active: number;
    readonly delayed: number;
  }>;
  /** The state of the queue, for metrics and alerts. */
  backlog(): Promise<Backlog>;
  /**
   * Changes if Redis may have lost data, including the last writes before a restart or failover. Callers then repeat their
   * requests. Costs one read per shard. A shard that does not answer counts as unchanged.
   * @throws KonvergeError `redis_unavailable` if no shard answers
   */
  incarnation(): Promise<string>;
  /** Resolves when Redis has accepted every request that was submitted before. @throws the reason of `signal` */
  accepted(signal: AbortSignal): Promise<void>;
  /** Returns what the last leader stored. @throws KonvergeError `redis_unavailable` */
  readProgress(): Promise<string | undefined>;
  /** Stores up to which changes this leader has made requests. @throws KonvergeError `redis_unavailable` */
  writeProgress(text: string): Promise<void>;
  work(options: WorkOptions): QueueWorker;
  close(): Promise<void>;
}
