import type { CallVerb, ObjectKey, OutcomeKind, Trigger } from "@konverge/core";

/** The traces of one process. Exists only if an OpenTelemetry SDK is registered, so that tracing costs nothing without one. */
export interface Tracing {
  /** From the request to its acknowledgement. */
  startRequest(key: ObjectKey, trigger: Trigger): RequestSpan;
  startAttempt(attempt: TracedAttempt): AttemptSpan;
  startExecution(execution: TracedExecution): ExecutionSpan;
  /** Exports the ended spans, if the SDK supports it. Ends in bounded time. */
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
  /** From one of the requests; retries keep it. */
  readonly traceparent?: string;
  readonly requestedAtMs: number;
  readonly startedAtMs: number;
}

/** The span of an attempt, and its children. */
export interface AttemptSpan {
  readonly traceId: string;
  /** Runs the handler, so that its spans are children of this one. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Starts the span of a call that is about to be sent to the API server with this URL. */
  readonly startCall: (call: TracedCall, server: string) => CallSpan;
  /** Notes a wait in an object lane that ended now. */
  noteLane(waitedMs: number): void;
  noteConflict(conflict: TracedConflict): void;
  /** `error` must be redacted: its text is exported. */
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
  /** Wait for a connection and a token, in ms. */
  readonly waitedMs: number;
}

export interface CallSpan {
  readonly headers: Readonly<Record<string, string>>;
  readonly ended: (end: {
    /** 0 without a response. */
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
  /** Wait before the next try, in ms. */
  readonly waitedMs: number;
}

/** An execution of a run. */
export interface TracedExecution {
  readonly workflow: string;
  readonly id: string;
  readonly cluster: string;
  readonly version: number;
  /** Creation of the run, epoch ms; another run may have the id later. */
  readonly createdAtMs: number;
  /** From 2, for a run that has continued with another input. */
  readonly round?: number;
  readonly epoch: number;
  readonly parent?: { readonly workflow: string; readonly id: string };
  /** Of the request that started or woke the run. */
  readonly traceparent?: string;
}

/** The span of an execution, and its children. */
export interface ExecutionSpan {
  /** Runs the function, so that its spans are children of this one. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Starts the span of one attempt of a step's or undo's body. */
  startBody(body: {
    readonly step: string;
    readonly kind: string;
    readonly attempt: number;
  }): BodySpan;
  /** Adds the span of a wait that ended now. */
  waited(wait: {
    readonly step: string;
    readonly kind: string;
    readonly durationMs: number;
    readonly errorCode?: string;
  }): void;
  end(result: string): void;
}

interface BodySpan {
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Starts the span of a call to the API server with this URL. */
  readonly startCall: (call: TracedCall, server: string) => CallSpan;
  /** `failure` must be redacted: its text is exported. */
  end(outcome: string, failure?: { readonly code: string; readonly message: string }): void;
}
