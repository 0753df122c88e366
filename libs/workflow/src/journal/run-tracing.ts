import type { ObjectKey, Trigger } from "@konverge/core";
import type { CallObserver, SentCall } from "@konverge/kube";
import type { RunRef } from "../define/run-ref.ts";
import type { Failure, StepKind } from "../store/run-record.ts";

/** The traces of runs in this process. Missing without a tracing SDK, so that tracing costs nothing without one. */
export interface RunTracing {
  /** From a request for an execution to its acknowledgement. */
  startRequest(
    key: ObjectKey,
    trigger: Trigger,
  ): {
    readonly traceparent: string;
    end(result: { readonly coalesced: boolean } | Error): void;
  };
  startExecution(execution: TracedExecution): ExecutionSpan;
}

interface TracedExecution extends RunRef {
  readonly cluster: string;
  readonly version: number;
  readonly createdAtMs: number;
  /** From 2, for a run that has continued with another input. */
  readonly round?: number;
  readonly epoch: number;
  readonly parent?: RunRef;
  /** Of the request that started or woke the run. */
  readonly traceparent?: string;
}

/** The span of an execution. Spans of all executions of a run have one trace. */
export interface ExecutionSpan {
  /** Runs the function, so that its spans are children of this one. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Starts the span of one attempt of a step's body. */
  startBody(body: TracedBody): BodySpan;
  /** Adds the span of a wait that was recorded now. */
  waited(wait: TracedWait): void;
  end(result: string): void;
}

interface TracedBody {
  readonly step: string;
  readonly kind: "step" | "undo";
  /** From 1. */
  readonly attempt: number;
}

interface TracedWait {
  readonly step: string;
  readonly kind: StepKind;
  readonly durationMs: number;
  readonly errorCode?: string;
}

export interface BodySpan {
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Starts the span of a call to the API server with this URL. */
  startCall(call: SentCall, server: string): CallObserver;
  /** `failure` must be redacted: its text is exported. */
  end(outcome: "done" | "failed" | "interrupted", failure?: Failure): void;
}

/** Returns traces without the messages of errors, which may quote values that are encoded everywhere else. */
export function withoutMessages(tracing: RunTracing): RunTracing {
  return {
    startRequest: (key, trigger) => tracing.startRequest(key, trigger),
    startExecution(execution) {
      const span = tracing.startExecution(execution);
      return {
        run: (work) => span.run(work),
        waited: (wait) => span.waited(wait),
        end: (result) => span.end(result),
        startBody(traced) {
          const body = span.startBody(traced);
          return {
            run: (work) => body.run(work),
            startCall: (call, server) => body.startCall(call, server),
            end: (outcome, failure) =>
              body.end(outcome, failure && { code: failure.code, message: "" }),
          };
        },
      };
    },
  };
}
