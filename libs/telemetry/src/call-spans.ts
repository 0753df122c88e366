import type * as OpenTelemetry from "@opentelemetry/api";
import type { Attributes, Context, Tracer } from "@opentelemetry/api";
import { defined, formatTraceparent } from "@konverge/core";
import type { CallSpan, TracedCall } from "./tracing.ts";

/** Shortest wait with a span of its own, in ms; shorter ones would hide the others. */
const LEAST_WAIT_MS = 1;
/** Statuses of normal operation: the object does not exist, or another writer was first (P7). */
const NO_ERRORS: ReadonlySet<number> = new Set([404, 409]);

export interface CallSpansOptions {
  readonly api: typeof OpenTelemetry;
  readonly tracer: Tracer;
  /** The parent, unless user code has started a span inside. */
  readonly own: Context;
}

/** Creates the spans of API calls and of the waits before them. */
export function createCallSpans({ api, tracer, own }: CallSpansOptions): {
  /** Starts the span of a call to the API server with this URL. */
  readonly startCall: (call: TracedCall, server: string) => CallSpan;
  /** Adds a wait that ended now. */
  readonly noteWait: (what: string, waitedMs: number) => void;
} {
  const { context, trace, SpanKind, SpanStatusCode } = api;
  const addresses = new Map<string, Attributes>();
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
    noteWait,
    startCall(call, server) {
      noteWait("token", call.waitedMs);
      const address = addresses.get(server) ?? addressOf(server);
      addresses.set(server, address);
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
  };
}

function addressOf(server: string): Attributes {
  const { hostname, port, protocol } = new URL(server);
  return {
    "server.address": hostname,
    "server.port": Number(port || (protocol === "https:" ? 443 : 80)),
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
    ...defined({
      "konverge.kube.subresource": subresource,
      "k8s.namespace.name": namespace,
      "konverge.kube.name": name,
    }),
    "konverge.kube.wait_ms": Math.round(waitedMs),
  };
}
