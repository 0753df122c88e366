import type { CallPriority, CallVerb, ResourceRef } from "@konverge/core";

/** How one attempt, or one part of a program, calls. */
export interface CallScope {
  /** Aborts every call. */
  readonly signal?: AbortSignal;
  /** Default `event`. */
  readonly priority?: CallPriority;
  /** True once the work that calls has been granted calls: it is finished before other work is begun. */
  readonly isRunning?: () => boolean;
  /** True when the call is a guard's own look at whether the server is back. */
  readonly isProbe?: boolean;
  /** Looks on at a call from the moment in which it is sent. Must not throw. */
  readonly onSend?: (call: SentCall) => CallObserver;
  /** Told of every call that was sent, when it has ended. Must not throw. */
  readonly observe?: (call: CallRecord) => void;
  /** Told of each optimistic conflict, also of those that `mutate` settles itself. Must not throw. */
  readonly onConflict?: (conflict: ConflictRecord) => void;
  /** Who writes, for managedFields. At most 128 bytes. */
  readonly fieldManager?: string;
}

/** A call that has its connection and its token. */
export interface SentCall {
  readonly verb: CallVerb;
  readonly method: string;
  /** `plural.group`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** For a connection and for the gate, in ms. */
  readonly waitedMs: number;
}

/** What looks on at one call. */
export interface CallObserver {
  /** Sent along, such as `traceparent`. */
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
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** Reason of the error that was answered. */
  readonly reason?: string;
  /** Unix time in ms. */
  readonly startedAtMs: number;
  /** From sending to the last byte. A watch counts until its answer began. */
  readonly durationMs: number;
  /** For a connection and for the gate, before it was sent. */
  readonly waitedMs: number;
  /** Version of the object that was answered. */
  readonly resourceVersion?: string;
  readonly fieldManager?: string;
}

/** One lost race for an object. */
export interface ConflictRecord {
  readonly ref: ResourceRef;
  readonly subresource?: string;
  /** Unix time in ms at which the conflict was answered. */
  readonly atMs: number;
  /** Which try of the mutation lost, from 1. */
  readonly try: number;
  /** Version on which the lost write was built. */
  readonly readVersion: string;
  /** Version found by the next read; absent when there was none. */
  readonly foundVersion?: string;
  /** Who wrote in between, by managedFields. Empty when nothing was read afterwards or the server does not say. */
  readonly competingWriters: readonly CompetingWriter[];
  /** True when it was not tried again: the caller has it as an error. */
  readonly isThrown: boolean;
  /** Before the next try, in ms. */
  readonly waitedMs: number;
}

export interface CompetingWriter {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  /** Fields that the manager's write touched, for example `spec.replicas`. */
  readonly paths: readonly string[];
}
