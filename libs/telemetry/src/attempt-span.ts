import type * as OpenTelemetry from "@opentelemetry/api";
import type { Attributes, Context, Span, Tracer } from "@opentelemetry/api";
import { formatTraceparent, type OutcomeKind } from "@konverge/core";
import type { AttemptSpan, TracedCall } from "./tracing.ts";

/** Shortest wait with a span of its own; shorter ones would hide the others. */
const LEAST_WAIT_MS = 1;
/** Maximum of managers and of field paths per conflict event. */
const MAX_TOLD = 10;

/** Statuses of normal operation: the object does not exist, or another writer was first (P7). */
const NO_ERRORS: ReadonlySet<number> = new Set([404, 409]);

export interface AttemptSpanOptions {
  readonly api: typeof OpenTelemetry;
  readonly tracer: Tracer;
  readonly span: Span;
  /** Of the span. */
  readonly parent: Context;
  readonly server: string;
}

export function startAttemptSpan(options: AttemptSpanOptions): AttemptSpan {
  const { api, tracer, span, server } = options;
  const { context, trace, SpanKind, SpanStatusCode } = api;
  const own = trace.setSpan(options.parent, span);
  const { hostname, port, protocol } = new URL(server);
  const address: Attributes = {
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
  };
  /** A span of the handler, or this one if no context manager is registered. */
  const current = (): Context => {
    const active = context.active();
    return trace.getSpan(active) === undefined ? own : active;
  };
  const noteWait = (what: string, waitedMs: number) => {
    if (waitedMs < LEAST_WAIT_MS) return;
    const nowMs = Date.now();
    tracer.startSpan(`wait for ${what}`, { startTime: nowMs - waitedMs }, current()).end(nowMs);
  };

  return {
    traceId: span.spanContext().traceId,
    run: (work) => context.with(own, work),
    startCall(call) {
      noteWait("token", call.waitedMs);
      const calling = tracer.startSpan(
        nameOf(call),
        { kind: SpanKind.CLIENT, attributes: { ...address, ...callAttributes(call) } },
        current(),
      );
      const { traceId, spanId, traceFlags } = calling.spanContext();
      return {
        headers: { traceparent: formatTraceparent({ traceId, spanId, flags: traceFlags }) },
        ended({ status, reason, resourceVersion }) {
          if (status > 0) calling.setAttribute("http.response.status_code", status);
          if (resourceVersion !== undefined) {
            calling.setAttribute("konverge.kube.resource_version", resourceVersion);
          }
          if (status === 0 || status >= 400) {
            // Never the message: an API server quotes whole objects in it (P12).
            calling.setAttribute(
              "error.type",
              reason ?? (status === 0 ? "no_answer" : `${status}`),
            );
            if (!NO_ERRORS.has(status)) calling.setStatus({ code: SpanStatusCode.ERROR });
          }
          calling.end();
        },
      };
    },
    noteLane: (waitedMs) => noteWait("lane", waitedMs),
    noteConflict({ try: attempt, readVersion, foundVersion, competingWriters, waitedMs }) {
      span.addEvent("conflict", {
        "konverge.conflict.try": attempt,
        "konverge.conflict.read_version": readVersion,
        ...(foundVersion === undefined ? {} : { "konverge.conflict.found_version": foundVersion }),
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

/** Without the object, because tracing systems group by span name. */
function nameOf({ method, resource, subresource }: TracedCall): string {
  return `${method} ${resource}${subresource === undefined ? "" : `/${subresource}`}`;
}

function callAttributes(call: TracedCall): Attributes {
  const { method, verb, resource, subresource, namespace, name, waitedMs } = call;
  return {
    "http.request.method": method,
    "konverge.kube.verb": verb,
    "konverge.kube.resource": resource,
    ...(subresource === undefined ? {} : { "konverge.kube.subresource": subresource }),
    ...(namespace === undefined ? {} : { "k8s.namespace.name": namespace }),
    ...(name === undefined ? {} : { "konverge.kube.name": name }),
    "konverge.kube.wait_ms": Math.round(waitedMs),
  };
}

/** As the `result` of controller-runtime; a conflict is not an error (P7). */
function isError(outcome: OutcomeKind): boolean {
  return outcome === "retry" || outcome === "rejected" || outcome === "terminal";
}
