import type * as OpenTelemetry from "@opentelemetry/api";
import type { Context, Span, Tracer } from "@opentelemetry/api";
import { defined, type OutcomeKind } from "@konverge/core";
import { createCallSpans } from "./call-spans.ts";
import type { AttemptSpan } from "./tracing.ts";

/** Maximum of managers and of field paths per conflict event. */
const MAX_TOLD = 10;

export interface AttemptSpanOptions {
  readonly api: typeof OpenTelemetry;
  readonly tracer: Tracer;
  readonly span: Span;
  /** Of the span. */
  readonly parent: Context;
}

export function startAttemptSpan(options: AttemptSpanOptions): AttemptSpan {
  const { api, tracer, span } = options;
  const { context, trace, SpanStatusCode } = api;
  const own = trace.setSpan(options.parent, span);
  const { startCall, noteWait } = createCallSpans({ api, tracer, own });

  return {
    traceId: span.spanContext().traceId,
    run: (work) => context.with(own, work),
    startCall,
    noteLane: (waitedMs) => noteWait("lane", waitedMs),
    noteConflict({ try: attempt, readVersion, foundVersion, competingWriters, waitedMs }) {
      span.addEvent("conflict", {
        "konverge.conflict.try": attempt,
        "konverge.conflict.read_version": readVersion,
        ...defined({ "konverge.conflict.found_version": foundVersion }),
        "konverge.conflict.managers": competingWriters
          .slice(0, MAX_TOLD)
          .map(({ manager }) => manager),
        "konverge.conflict.paths": competingWriters
          .flatMap(({ paths }) => paths)
          .slice(0, MAX_TOLD),
        "konverge.conflict.wait_ms": waitedMs,
      });
    },
    end({ outcome, error }) {
      span.setAttribute("konverge.outcome", outcome);
      if (error !== undefined) span.setAttribute("error.type", error.code);
      if (isError(outcome)) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: error?.message ?? outcome });
      }
      span.end();
    },
  };
}

/** As the `result` of controller-runtime; a conflict is not an error (P7). */
function isError(outcome: OutcomeKind): boolean {
  return outcome === "retry" || outcome === "rejected" || outcome === "terminal";
}
