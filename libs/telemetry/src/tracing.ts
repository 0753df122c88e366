import type { CallVerb, ObjectKey, OutcomeKind, Trigger } from "@konverge/core";

/**
 * Traces of one process, in the words of what is traced. Exists only where an OpenTelemetry SDK is registered, so that
 * without one nothing is asked per call.
 */
export interface Tracing {
  /** From the wish to its acknowledgement. */
  startRequest(key: ObjectKey, trigger: Trigger): RequestSpan;
  startAttempt(attempt: TracedAttempt): AttemptSpan;
  /** Hands on what has ended, as far as the SDK can. Ends in bounded time. */
  flush(): Promise<void>;
}

interface RequestSpan {
  /** W3C trace context of the span. */
  readonly traceparent: string;
  end(result: { readonly coalesced: boolean } | Error): void;
}

export interface TracedAttempt {
  readonly key: ObjectKey;
  readonly kind: string;
  readonly epoch: number;
  /** Starts since the last success, from 1. */
  readonly attempt: number;
  readonly triggers: readonly Trigger[];
  /** Of one of the requests, in the retries too. */
  readonly traceparent?: string;
  readonly requestedAtMs: number;
  readonly startedAtMs: number;
  /** URL of the API server. */
  readonly server: string;
}

/** One attempt, and what is under it. */
export interface AttemptSpan {
  readonly traceId: string;
  /** Runs the handler, so that spans of its own belong to this one. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** A call that is about to be sent. */
  readonly startCall: (call: TracedCall) => CallSpan;
  /** The attempt waited for its turn to write an object until now. */
  noteLane(waitedMs: number): void;
  noteConflict(conflict: TracedConflict): void;
  /** `error` must be fit for a record: its text is shown. */
  end(end: {
    readonly outcome: OutcomeKind;
    readonly error?: { readonly code: string; readonly message: string } | undefined;
  }): void;
}

export interface TracedCall {
  readonly verb: CallVerb;
  readonly method: string;
  /** `plural.group`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** For a connection and a token. */
  readonly waitedMs: number;
}

interface CallSpan {
  readonly headers: Readonly<Record<string, string>>;
  readonly ended: (end: {
    /** 0 when there was no answer. */
    readonly status: number;
    readonly reason?: string;
    readonly resourceVersion?: string;
  }) => void;
}

interface TracedConflict {
  readonly try: number;
  readonly readVersion: string;
  readonly foundVersion?: string;
  readonly competingWriters: readonly {
    readonly manager: string;
    readonly paths: readonly string[];
  }[];
  /** Before the next try, in ms. */
  readonly waitedMs: number;
}
