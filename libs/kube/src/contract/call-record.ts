import type { CallPriority, CallVerb, ResourceRef } from "@konverge/core";
import type { CallHold, CallPlan } from "./call-plan.ts";
import type { Discovery } from "./discovery.ts";
import type { Urgency } from "./urgency.ts";

/** How one attempt, or one part of a program, makes its calls. */
export interface CallScope {
  /** Name of the cluster in errors, if it is not that of the caller. */
  readonly cluster?: string;
  /** Aborts every call. */
  readonly signal?: AbortSignal;
  /** Default `event`. */
  readonly priority?: CallPriority;
  /** Raises the priority while other work waits for this work. */
  readonly urgency?: Urgency;
  /** True once the calling work has been granted calls: running work is finished before other work starts. */
  readonly isRunning?: () => boolean;
  /** True for the guard's own probe of the server. */
  readonly isProbe?: boolean;
  /** Checks the body of a request before the request waits for a token. Its error rejects the call. */
  readonly checkBody?: (body: string) => void;
  /** Observes a call from the moment it is sent. Must not throw. */
  readonly onSend?: (call: SentCall) => CallObserver;
  /** Called after each call that was sent. Must not throw. */
  readonly observe?: (call: CallRecord) => void;
  /** Called for each optimistic conflict, including those that `mutate` resolves. Must not throw. */
  readonly onConflict?: (conflict: ConflictRecord) => void;
  /** The manager in managedFields. At most 128 bytes. */
  readonly fieldManager?: string;
  /** Sends all writes with `dryRun=All`. */
  readonly dryRun?: boolean;
  /** Plans all writes instead of sending them. An inner scope cannot end it. */
  readonly plan?: CallPlan;
  /** Rejects all writes that were not planned. */
  readonly hold?: CallHold;
  /** Served resources of this scope alone. Default: those that all scopes of the client share. */
  readonly discovery?: Discovery;
}

/** A call that has a connection and a token. */
export interface SentCall {
  readonly verb: CallVerb;
  readonly method: string;
  /** `plural.group`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** Time spent waiting for a connection and for the gate, in ms. */
  readonly waitedMs: number;
}

/** The observer of one call. */
export interface CallObserver {
  /** Additional request headers, such as `traceparent`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly ended: (record: CallRecord) => void;
}

export interface CallRecord {
  readonly verb: CallVerb;
  /** `plural.group`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** Reason of the error response. */
  readonly reason?: string;
  /** Unix time in ms. */
  readonly startedAtMs: number;
  /** From sending to the last byte. For a watch, until its response starts. */
  readonly durationMs: number;
  /** Time spent waiting for a connection and for the gate before the call was sent, in ms. */
  readonly waitedMs: number;
  /** Version of the returned object. */
  readonly resourceVersion?: string;
  readonly fieldManager?: string;
}

/** One write that lost an optimistic race. */
export interface ConflictRecord {
  readonly ref: ResourceRef;
  readonly subresource?: string;
  /** Unix time of the conflict response, in ms. */
  readonly atMs: number;
  /** Number of the mutation's try that failed, from 1. */
  readonly try: number;
  /** Version on which the failed write was based. */
  readonly readVersion: string;
  /** Version returned by the next read; absent without one. */
  readonly foundVersion?: string;
  /** The writers in between, by managedFields. Empty without a later read, or if the server does not report them. */
  readonly competingWriters: readonly CompetingWriter[];
  /** True if it was not retried and the caller receives the error. */
  readonly isThrown: boolean;
  /** Delay before the next try, in ms. */
  readonly waitedMs: number;
}

export interface CompetingWriter {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  /** Fields that the manager's write changed, for example `spec.replicas`. */
  readonly paths: readonly string[];
}
