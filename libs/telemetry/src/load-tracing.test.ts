import { context, trace, type TracerProvider } from "@opentelemetry/api";
import { afterEach, expect, test } from "vitest";
import { loadTracing } from "./load-tracing.ts";

afterEach(() => trace.disable());

test("returns nothing without an SDK", async () => {
  expect(await loadTracing("test")).toBeUndefined();
});

test("uses the registered SDK, and flushes it if possible", async () => {
  const asked: string[] = [];
  const noop = trace.getTracer("none");
  const provider: TracerProvider & { forceFlush(): Promise<void> } = {
    getTracer: (name, version) => {
      asked.push(`${name} ${version}`);
      return noop;
    },
    forceFlush: async () => void asked.push("flush"),
  };
  trace.setGlobalTracerProvider(provider);
  const tracing = await loadTracing("1.2.3");
  await tracing?.flush();
  expect(asked).toEqual(["konverge 1.2.3", "flush"]);
  expect(trace.getSpan(context.active())).toBeUndefined();
});

test("an unavailable collector does not delay a stop", async () => {
  const noop = trace.getTracer("none");
  const provider: TracerProvider & { forceFlush(): Promise<void> } = {
    getTracer: () => noop,
    forceFlush: () => Promise.reject(new Error("nobody there")),
  };
  trace.setGlobalTracerProvider(provider);
  const tracing = await loadTracing("test");
  await expect(tracing?.flush()).resolves.toBeUndefined();
});
