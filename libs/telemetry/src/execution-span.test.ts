import * as api from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { startExecutionSpan } from "./execution-span.ts";

/** Returns the traces of some executions that a process with this share of sampled traces exports. */
function tracesOf(ids: readonly string[], share: number): (string | undefined)[] {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer("test");
  return ids.map((id) => {
    exporter.reset();
    const place = { workflow: "copy", cluster: "default", version: 1, epoch: 1 };
    startExecutionSpan({ api, tracer, execution: { ...place, id, createdAtMs: 1 } }).end("done");
    return exporter.getFinishedSpans()[0]?.spanContext().traceId;
  });
}

test("processes agree about the trace of a run, and about whether it is sampled", () => {
  const ids = Array.from({ length: 200 }, (_, index) => `run-${index}`);
  const all = tracesOf(ids, 1);
  expect(new Set(all).size).toBe(200);
  const some = tracesOf(ids, 0.5);
  expect(tracesOf(ids, 0.5)).toEqual(some);
  const sampled = some.filter((id) => id !== undefined);
  expect(sampled.length).toBeGreaterThan(50);
  expect(sampled.length).toBeLessThan(150);
  expect(all).toEqual(expect.arrayContaining(sampled));
  expect(tracesOf(ids, 0)).toEqual(ids.map(() => undefined));
});
