import { createHash } from "node:crypto";
import type * as OpenTelemetry from "@opentelemetry/api";
import type { Attributes, Context, Link, Span, SpanContext, Tracer } from "@opentelemetry/api";
import { defined, parseTraceparent } from "@konverge/core";
import { createCallSpans } from "./call-spans.ts";
import type { ExecutionSpan, TracedExecution } from "./tracing.ts";

/** Number of a repeated name. Without it, because tracing systems group by span name. */
const REPEAT = /#\d+$/;
const UNDO = /^undo:/;
/** Results that are errors, as for attempts. */
const ERRORS: ReadonlySet<string> = new Set(["failed", "error"]);

export interface ExecutionSpanOptions {
  readonly api: typeof OpenTelemetry;
  readonly tracer: Tracer;
  readonly execution: TracedExecution;
}

/**
 * Starts the span of one execution of a run. The trace id is a hash of the run, so that the executions of several workers and
 * days are one trace without a common parent.
 */
export function startExecutionSpan({
  api,
  tracer,
  execution,
}: ExecutionSpanOptions): ExecutionSpan {
  const { context, trace, ROOT_CONTEXT, SpanKind, SpanStatusCode } = api;
  const { workflow, traceparent } = execution;
  const name = `run ${workflow}`;
  const attributes = attributesOf(execution);
  const run = trace.setSpanContext(ROOT_CONTEXT, spanContextOf(api, tracer, execution));
  const span = tracer.startSpan(
    name,
    { kind: SpanKind.CONSUMER, attributes, links: linksTo(traceparent) },
    run,
  );
  const own = trace.setSpan(run, span);
  const fail = (failed: Span, code: string, message?: string) => {
    failed.setAttribute("error.type", code);
    failed.setStatus({
      code: SpanStatusCode.ERROR,
      ...defined({ message }),
    });
  };

  return {
    run: (work) => context.with(own, work),
    startBody({ step, kind, attempt }) {
      const body = tracer.startSpan(
        nameOf(kind, step),
        { attributes: { "konverge.step": step, "konverge.attempt": attempt } },
        own,
      );
      const inside: Context = trace.setSpan(own, body);
      const { startCall } = createCallSpans({ api, tracer, own: inside });
      return {
        run: (work) => context.with(inside, work),
        startCall,
        end(outcome, failure) {
          body.setAttribute("konverge.outcome", outcome);
          if (outcome === "failed" && failure !== undefined) {
            fail(body, failure.code, failure.message);
          }
          body.end();
        },
      };
    },
    waited({ step, kind, durationMs, errorCode }) {
      const nowMs = Date.now();
      const wait = tracer.startSpan(
        nameOf(kind, step),
        { startTime: nowMs - durationMs, attributes: { "konverge.step": step } },
        own,
      );
      if (errorCode !== undefined) wait.setAttribute("error.type", errorCode);
      wait.end(nowMs);
    },
    end(result) {
      span.setAttribute("konverge.result", result);
      if (ERRORS.has(result)) fail(span, result);
      span.end();
    },
  };
}

/** The parent of all executions of a run. No process has this span: it would last as long as the run. */
function spanContextOf(
  api: typeof OpenTelemetry,
  tracer: Tracer,
  { cluster, workflow, id, createdAtMs, round = 1 }: TracedExecution,
): SpanContext {
  const unique = [cluster, workflow, id, createdAtMs, round].join("/");
  const digest = createHash("sha256").update(unique).digest("hex");
  const traceId = digest.slice(0, 32);
  const spanId = digest.slice(32, 48);
  const traceFlags = isSampled(api, tracer, traceId, `run ${workflow}`) ? 1 : 0;
  return { traceId, spanId, traceFlags, isRemote: true };
}

/**
 * Returns the decision of the SDK's sampler about the trace. A sampler that follows the parent would otherwise follow the one
 * that is made up here. Without a known sampler, every run is sampled.
 */
function isSampled(
  { ROOT_CONTEXT, SpanKind, SamplingDecision }: typeof OpenTelemetry,
  tracer: Tracer,
  traceId: string,
  name: string,
): boolean {
  const { _sampler: sampler } = tracer as { readonly _sampler?: OpenTelemetry.Sampler };
  if (typeof sampler?.shouldSample !== "function") return true;
  const { decision } = sampler.shouldSample(ROOT_CONTEXT, traceId, name, SpanKind.CONSUMER, {}, []);
  return decision === SamplingDecision.RECORD_AND_SAMPLED;
}

function linksTo(traceparent: string | undefined): Link[] {
  const parsed = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  if (parsed === undefined) return [];
  const { traceId, spanId, flags } = parsed;
  return [{ context: { traceId, spanId, traceFlags: flags, isRemote: true } }];
}

function nameOf(kind: string, step: string): string {
  return `${kind} ${step.replace(REPEAT, "").replace(UNDO, "")}`;
}

function attributesOf(execution: TracedExecution): Attributes {
  const { cluster, workflow, id, version, epoch, parent, round } = execution;
  return {
    "konverge.cluster": cluster,
    "konverge.workflow": workflow,
    "konverge.workflow.version": version,
    "konverge.run": id,
    "konverge.epoch": epoch,
    ...defined({ "konverge.round": round }),
    ...(parent === undefined ? {} : { "konverge.parent_run": `${parent.workflow}/${parent.id}` }),
  };
}
