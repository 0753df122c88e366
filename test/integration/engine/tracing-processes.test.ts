import { createApi, openQueueAccess } from "@konverge/api";
import { openGuardControl } from "@konverge/guard";
import { createMetrics, loadTracing, observeRequests } from "@konverge/telemetry";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { startEmbeddedServer } from "../kube/embedded-server.ts";
import { installWidgets } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { captureSpans, type SeenSpan } from "./trace-capture.ts";
import type { ChildConfig } from "./tracing-child.ts";
import { useChildren } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const startChild = useChildren();
const spans = captureSpans();
afterAll(() => spans.stop());
const CHILD = "test/integration/engine/tracing-child.ts";

test("one trace connects a caller's header, the API process, the queue and the calls of a worker", async () => {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { client, kubeconfig } = server;
  const widgets = await installWidgets(client, "processes.test.konverge.dev");
  await client.create(widgets, { metadata: { namespace: "default", name: "one" }, spec: {} });

  const config: ChildConfig = {
    widgets,
    env: {
      KONVERGE_REDIS_URL: harness.url,
      KONVERGE_PREFIX: harness.prefix,
      KONVERGE_KUBECONFIG: kubeconfig,
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_LOG_LEVEL: "silent",
    },
  };
  const worker = startChild([CHILD, JSON.stringify(config)]);
  await until("the worker is ready", () => worker.messages.some((line) => "ready" in line));

  const metrics = createMetrics({ version: "test" });
  const access = openQueueAccess({
    redis: harness.apiTarget,
    prefix: harness.prefix,
    onError: () => undefined,
    observe: observeRequests(metrics, await loadTracing("test")),
  });
  onTestFinished(() => access.close());
  const guards = openGuardControl({ redis: harness.target, prefix: harness.prefix });
  onTestFinished(() => guards.close());
  const api = createApi({
    access,
    guards,
    metrics,
    token: undefined,
    cluster: "default",
    onError: () => undefined,
  });
  const traceId = "d".repeat(32);
  const post = (name: string, traceparent: string) =>
    api.fetch(
      new Request("http://localhost:7070/v1/reconciles", {
        method: "POST",
        headers: { "content-type": "application/json", host: "localhost:7070", traceparent },
        body: JSON.stringify({ controller: "widgets", namespace: "default", name }),
      }),
    );
  const answer = await post("one", `00-${traceId}-${"e".repeat(16)}-01`);
  expect(answer.status).toBe(202);
  const { id } = (await answer.json()) as { readonly id: string };
  await until("the request is finished", async () => {
    const state = await api.fetch(
      new Request(`http://localhost:7070/v1/reconciles/${encodeURIComponent(id)}`, {
        headers: { host: "localhost:7070" },
      }),
    );
    return ((await state.json()) as { readonly phase: string }).phase === "finished";
  });
  // An invalid header counts as a missing one.
  expect((await post("one", "nonsense")).status).toBe(202);

  worker.process.kill("SIGTERM");
  const seen = await until("the worker has reported its spans", () =>
    worker.messages.find((line): line is { spans: SeenSpan[] } => "spans" in line),
  );
  const request = spans.ended().find((span) => span.traceId === traceId);
  expect(request).toMatchObject({ name: "request widgets", parentId: "e".repeat(16) });
  const attempt = seen.spans.find(({ parentId }) => parentId === request?.spanId);
  expect(attempt).toMatchObject({ traceId, name: "reconcile widgets" });
  const calls = seen.spans.filter(({ parentId }) => parentId === attempt?.spanId);
  expect(calls.map(({ name }) => name)).toContain("GET widgets.processes.test.konverge.dev");
  expect(new Set(calls.map((span) => span.traceId))).toEqual(new Set([traceId]));
});
