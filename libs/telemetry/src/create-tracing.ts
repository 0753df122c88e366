import type * as OpenTelemetry from "@opentelemetry/api";
import type { Context, Link, SpanContext, Tracer } from "@opentelemetry/api";
import {
  defined,
  formatTraceparent,
  parseTraceparent,
  resourceId,
  type ObjectKey,
  type Trigger,
  type TriggerKind,
} from "@konverge/core";
import { startAttemptSpan } from "./attempt-span.ts";
import { startExecutionSpan } from "./execution-span.ts";
import type { TracedAttempt, Tracing } from "./tracing.ts";

/** Attempts in the trace of their request; an outage must not create a trace of thousands of attempts. */
const ATTEMPTS_IN_TRACE = 10;

/** Triggers from a caller's code: its active span is their parent. */
const OF_CALLERS: ReadonlySet<TriggerKind> = new Set(["http", "cli", "signal"]);

/** @param flush exports the pending spans */
export function createTracing(
  api: typeof OpenTelemetry,
  tracer: Tracer,
  flush: () => Promise<void>,
): Tracing {
  const { context, trace, ROOT_CONTEXT, SpanKind, SpanStatusCode } = api;

  const contextOf = (traceparent: string | undefined): Context => {
    const spanContext = spanContextOf(traceparent);
    return spanContext === undefined
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, spanContext);
  };
  const parentOfRequest = ({ kind, traceparent }: Trigger): Context => {
    if (OF_CALLERS.has(kind) && trace.getSpan(context.active()) !== undefined) {
      return context.active();
    }
    return contextOf(traceparent);
  };

  return {
    startRequest(key, trigger) {
      const span = tracer.startSpan(
        `request ${key.controller}`,
        {
          kind: SpanKind.PRODUCER,
          attributes: {
            ...keyAttributes(key),
            "konverge.trigger": trigger.kind,
            ...defined({ "konverge.trigger.by": trigger.by }),
          },
        },
        parentOfRequest(trigger),
      );
      return {
        traceparent: traceparentOf(span.spanContext()),
        end(result) {
          if (result instanceof Error) span.setStatus({ code: SpanStatusCode.ERROR });
          else span.setAttribute("konverge.coalesced", result.coalesced);
          span.end();
        },
      };
    },
    startAttempt(attempt) {
      const { triggers, traceparent } = attempt;
      const own = attempt.attempt <= ATTEMPTS_IN_TRACE ? traceparent : undefined;
      const others = [traceparent, ...triggers.map((trigger) => trigger.traceparent)];
      const links = linksTo(new Set(others.filter((other) => other !== own)));
      const parent = contextOf(own);
      const span = tracer.startSpan(
        `reconcile ${attempt.key.controller}`,
        { kind: SpanKind.CONSUMER, links, attributes: attemptAttributes(attempt) },
        parent,
      );
      return startAttemptSpan({ api, tracer, span, parent });
    },
    startExecution: (execution) => startExecutionSpan({ api, tracer, execution }),
    flush,
  };
}

function spanContextOf(traceparent: string | undefined): SpanContext | undefined {
  const parsed = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  if (parsed === undefined) return undefined;
  return {
    traceId: parsed.traceId,
    spanId: parsed.spanId,
    traceFlags: parsed.flags,
    isRemote: true,
  };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return formatTraceparent({ traceId, spanId, flags: traceFlags });
}

function linksTo(traceparents: ReadonlySet<string | undefined>): Link[] {
  return [...traceparents].flatMap((traceparent) => {
    const context = spanContextOf(traceparent);
    return context === undefined ? [] : [{ context }];
  });
}

function keyAttributes({ controller, cluster, group, resource, namespace, name }: ObjectKey) {
  return {
    "konverge.controller": controller,
    "konverge.cluster": cluster,
    "konverge.resource": resourceId({ group, resource }),
    ...defined({ "k8s.namespace.name": namespace }),
    "konverge.name": name,
  };
}

function attemptAttributes(attempt: TracedAttempt) {
  const { key, kind, epoch, triggers, requestedAtMs, startedAtMs } = attempt;
  return {
    ...keyAttributes(key),
    "konverge.kind": kind,
    "konverge.epoch": epoch,
    "konverge.attempt": attempt.attempt,
    "konverge.triggers": triggers.length,
    "konverge.queue_ms": Math.max(0, startedAtMs - requestedAtMs),
  };
}
