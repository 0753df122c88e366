import { trace } from "@opentelemetry/api";
import { defineWorkflow, TerminalError } from "@konverge/workflow";
import { loadTracing, type Tracing } from "@konverge/telemetry";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { watchCommands } from "../../contract/watch-commands.ts";
import { scrambleCodec } from "../../support/scramble-codec.ts";
import { until } from "../../support/until.ts";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { captureSpans, type SeenSpan } from "../engine/trace-capture.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const spans = captureSpans();
afterAll(() => spans.stop());
// Hooks run in reverse order: the runs of a test are closed before.
afterEach(() => spans.reset());
const harness = useWorkflows();
const TRACE_ID = "a".repeat(32);
const CALLER = `00-${TRACE_ID}-${"1".repeat(16)}-01`;
let tracing: Tracing;

beforeAll(async () => {
  const loaded = await loadTracing("test");
  if (loaded === undefined) throw new Error("the SDK was not found");
  tracing = loaded;
});

const named = (name: string): SeenSpan[] => spans.ended().filter((span) => span.name === name);

test("the executions of a run by several workers are one trace, with a span per body and wait", async () => {
  const copied = defineWorkflow("copied", { version: 1 }, async (w) => {
    const body = async ({ attempt }: { readonly attempt: number }) => {
      trace.getTracer("user").startSpan("own work").end();
      if (attempt === 1) throw new RangeError("disk full");
    };
    await w.step("copy", body, { retry: { delay: 1 } });
    await w.signal("go");
    await w.step("publish", async () => undefined);
    return null;
  });
  const first = harness.openRuns({ tracing });
  first.work({ workflows: [copied] });
  await first.start(copied, null, { id: "c1", traceparent: CALLER });
  await inStatus(first, copied, "c1", "waiting");
  await first.close();
  const second = harness.openRuns({ tracing });
  second.work({ workflows: [copied] });
  await second.signal({ workflow: "copied", id: "c1" }, "go");
  await ended(second, copied, "c1");
  await until("the last execution has ended", () => {
    return named("run copied").some(({ attributes }) => attributes["konverge.result"] === "done");
  });

  const executions = named("run copied");
  expect(executions.length).toBeGreaterThanOrEqual(2);
  expect(executions[0]?.attributes).toMatchObject({
    "konverge.workflow": "copied",
    "konverge.run": "c1",
    "konverge.cluster": "default",
    "konverge.workflow.version": 1,
    "konverge.result": "waiting",
  });
  const traceId = executions[0]?.traceId;
  expect(new Set(executions.map((span) => span.traceId))).toEqual(new Set([traceId]));
  expect(new Set(executions.map(({ parentId }) => parentId)).size, "one root").toBe(1);

  const [request] = spans.ended().filter(({ traceId: id }) => id === TRACE_ID);
  expect(request?.name).toBe("request workflow.copied");
  expect(executions[0]?.links, "the request of the start").toEqual([request?.spanId]);

  const tries = named("step copy");
  expect(tries.map(({ attributes, status }) => [attributes, status])).toEqual([
    [
      {
        "konverge.step": "copy",
        "konverge.attempt": 1,
        "konverge.outcome": "failed",
        "error.type": "RangeError",
      },
      2,
    ],
    [{ "konverge.step": "copy", "konverge.attempt": 2, "konverge.outcome": "done" }, 0],
  ]);
  expect(tries.map(({ parentId }) => parentId)).toEqual(tries.map(() => executions[0]?.spanId));
  expect(named("own work").map(({ parentId }) => parentId)).toEqual(
    tries.map(({ spanId }) => spanId),
  );
  const [wait, ...others] = named("signal go");
  expect([wait?.traceId, others]).toEqual([traceId, []]);
  expect(wait?.startMs, "from its begin in the first worker").toBeLessThan(
    executions.at(-1)?.startMs ?? 0,
  );
  expect(named("step publish").map((span) => span.traceId)).toEqual([traceId]);
});

test("a failed run and its undo are errors in its trace; a child links to its parent's", async () => {
  const child = defineWorkflow("fetched", { version: 1 }, async () => null);
  const failing = defineWorkflow("failing", { version: 1 }, async (w) => {
    await w.step("create", async () => undefined, { undo: async () => undefined });
    await w.child("fetch", child, null);
    throw new TerminalError("no");
  });
  const runs = harness.openRuns({ tracing });
  runs.work({ workflows: [failing, child] });
  await runs.start(failing, null, { id: "f1" });
  await ended(runs, failing, "f1");
  await until("the last execution has ended", () => {
    return named("run failing").some(
      ({ attributes }) => attributes["konverge.result"] === "failed",
    );
  });
  const executions = named("run failing");
  expect(executions.at(-1)).toMatchObject({ status: 2, attributes: { "error.type": "failed" } });
  expect(named("undo create")).toMatchObject([
    { traceId: executions[0]?.traceId, attributes: { "konverge.outcome": "done" } },
  ]);
  expect(named("child fetch")).toMatchObject([{ traceId: executions[0]?.traceId }]);
  const [fetched] = named("run fetched");
  expect(fetched?.traceId).not.toBe(executions[0]?.traceId);
  expect(fetched?.attributes["konverge.parent_run"]).toBe("failing/f1");
  const [request] = named("request workflow.fetched");
  expect(request?.traceId, "made by the parent").toBe(executions[0]?.traceId);
  expect(fetched?.links).toEqual([request?.spanId]);
});

test("without tracing, a run has no spans, and its requests no trace context", async () => {
  using watched = await watchCommands(harness.url);
  const plain = defineWorkflow("plain", { version: 1 }, async (w) => {
    await w.step("copy", async () => undefined);
    await w.sleep("nap", 1);
    return null;
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [plain] });
  await runs.start(plain, null, { id: "p1" });
  await ended(runs, plain, "p1");
  expect(spans.ended()).toEqual([]);
  const own = watched.commands.filter(({ args }) => args.join(" ").includes(harness.prefix));
  expect(own.length).toBeGreaterThan(0);
  expect(own.filter(({ args }) => args.join(" ").includes("traceparent"))).toEqual([]);
});

test("calls of a body to the API server are spans below its try", async () => {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const applied = defineWorkflow("applied", { version: 1 }, async (w) => {
    await w.step("apply", async (k) => {
      const metadata = { name: "traced", namespace: "default" };
      await k.create({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { a: "1" } });
    });
  });
  const runs = harness.openRuns({ tracing });
  const clusters = { home: "default", client: async () => server.client };
  runs.work({ workflows: [applied], clusters });
  await runs.start(applied, null, { id: "a1" });
  expect((await ended(runs, applied, "a1")).status).toBe("done");
  const [body] = named("step apply");
  expect(named("POST configmaps")).toMatchObject([
    {
      traceId: body?.traceId,
      parentId: body?.spanId,
      attributes: { "http.response.status_code": 201, "konverge.kube.name": "traced" },
    },
  ]);
});

test("P12: the spans of runs with a codec have no messages of errors", async () => {
  const failing = defineWorkflow("hidden", { version: 1 }, async (w) => {
    const body = async () => {
      throw new RangeError("canary-4Hq");
    };
    await w.step("charge", body, { retry: { attempts: 1 } });
  });
  const runs = harness.openRuns({ tracing, codec: scrambleCodec() });
  runs.work({ workflows: [failing] });
  await runs.start(failing, undefined, { id: "h" });
  await ended(runs, failing, "h");
  const [body] = await until("the span of the body", () => {
    const found = named("step charge");
    return found.length > 0 ? found : undefined;
  });
  expect(body?.attributes).toMatchObject({ "error.type": "RangeError" });
  expect(JSON.stringify(spans.ended())).not.toContain("canary-4Hq");
});
