import { context, trace, type HrTime } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace";

/** A span for assertions; also the JSON line of a child process. */
export interface SeenSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  /** Status code of OpenTelemetry: 2 is an error. */
  readonly status: number;
  readonly message: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly string[];
  readonly events: readonly { readonly name: string; readonly attributes: unknown }[];
  readonly startMs: number;
}

interface SpanCapture {
  readonly ended: () => SeenSpan[];
  readonly reset: () => void;
  /** Removes the SDK from this process, which the next test file uses too. */
  readonly stop: () => void;
}

/** Registers an SDK in this process, as a user would. Returns the spans that ended since then. */
export function captureSpans(): SpanCapture {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
  return {
    ended: () => exporter.getFinishedSpans().map(seen),
    reset: () => exporter.reset(),
    stop: () => {
      trace.disable();
      context.disable();
    },
  };
}

function seen(span: ReadableSpan): SeenSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentId: span.parentSpanContext?.spanId,
    status: span.status.code,
    message: span.status.message,
    attributes: span.attributes,
    links: span.links.map((link) => link.context.spanId),
    events: span.events.map(({ name, attributes }) => ({ name, attributes })),
    startMs: toMs(span.startTime),
  };
}

function toMs([seconds, nanoseconds]: HrTime): number {
  return seconds * 1_000 + nanoseconds / 1e6;
}
