import { trace } from "@opentelemetry/api";
import { defined, type ObjectKey, type ResourceType } from "@konverge/core";
import {
  defineController,
  startEngine,
  type ControllerOptions,
  type Engine,
  type Log,
  type Predicate,
} from "@konverge/engine";
import { isKubeApiError, type KubeClient } from "@konverge/kube";
import { Secret } from "@konverge/kube/kinds";
import { createObjectLanes } from "@konverge/lanes";
import { type WorkQueue } from "@konverge/queue";
import { createMetrics, loadTracing, observeRequests, type Tracing } from "@konverge/telemetry";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { installWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { captureSpans, type SeenSpan } from "./trace-capture.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const spans = captureSpans();
afterAll(() => spans.stop());
const namespace = "default";
const lines: { readonly fields: object; readonly message: string }[] = [];
const recording = (bound: object): Log => {
  const note = (fields: object, message: string) =>
    void lines.push({ fields: { ...bound, ...fields }, message });
  return {
    debug: note,
    info: note,
    warn: note,
    error: note,
    child: (more) => recording({ ...bound, ...more }),
  };
};

const [target] = testServers();
let client: KubeClient;
let closeServer: () => Promise<void>;
let Widgets: ResourceType<Widget>;
let tracing: Tracing;
let serial = 0;
const cleanup: (() => unknown)[] = [];

beforeAll(async () => {
  const server = await target?.open();
  if (server === undefined) throw new Error("no API server");
  ({ client } = server);
  closeServer = () => server.close();
  Widgets = await installWidgets(client, "tracing.test.konverge.dev");
  const loaded = await loadTracing("test");
  if (loaded === undefined) throw new Error("the SDK was not found");
  tracing = loaded;
});
afterEach(async () => {
  for (const close of cleanup.splice(0).toReversed()) await close();
  spans.reset();
  lines.length = 0;
});
afterAll(() => closeServer());

const traceIds = ["a", "b", "c"].map((digit) => digit.repeat(32));
const parents = traceIds.map((traceId, index) => `00-${traceId}-${`${index + 1}`.repeat(16)}-01`);

/** A controller whose watch enqueues nothing, so that only the test starts attempts. */
function prepare({
  predicate = () => false,
  ...options
}: Partial<ControllerOptions<Widget>> &
  Pick<ControllerOptions<Widget>, "reconcile"> & { readonly predicate?: Predicate }) {
  const name = `traced-${++serial}`;
  const controller = defineController({
    name,
    for: { type: Widgets, predicate },
    backoff: {
      failure: { baseMs: 1, factor: 1, capMs: 1, steps: Infinity, jitter: { kind: "none" } },
    },
    ...options,
  });
  const metrics = createMetrics({ version: "test" });
  // As the API in a process without an SDK: the context of the caller is passed on.
  const queue = harness.open({ controller: name });
  const key = (object: string): ObjectKey => ({
    controller: name,
    cluster: "default",
    resource: "widgets",
    group: Widgets.group,
    namespace,
    name: object,
  });
  const start = async (): Promise<Engine> => {
    const id = `test-${process.pid}-${serial}`;
    const lanes = createObjectLanes({
      redis: harness.target,
      cluster: "default",
      prefix: harness.prefix,
      processId: id,
      onError: () => undefined,
    });
    const engine = await startEngine({
      controllers: [controller],
      client,
      lanes,
      queueFor: () =>
        harness.open({ controller: name, observe: observeRequests(metrics, tracing) }),
      workerId: id,
      log: recording({}),
      metrics,
      tracing,
      installation: `${id}-${Date.now()}`,
      leaseNamespace: namespace,
    });
    cleanup.push(
      () => lanes.close(),
      () => engine.stop({ graceMs: 1_000 }),
    );
    return engine;
  };
  return { queue, key, start };
}

const make = async (name: string) => {
  await client.create(Widgets, { metadata: { namespace, name }, spec: {} });
  cleanup.push(() => client.delete(Widgets, { namespace, name }));
};
const ask = (queue: WorkQueue, key: ObjectKey, traceparent: string | undefined) =>
  queue.request(
    key,
    { kind: "http", by: "http", ...defined({ traceparent }) },
    { class: "interactive" },
  );
/** The ended attempts of an object, in order. */
const attemptsOf = (object: string): SeenSpan[] =>
  spans
    .ended()
    .filter(({ name, attributes }) => {
      return name.startsWith("reconcile ") && attributes["konverge.name"] === object;
    })
    .toSorted((left, right) => left.startMs - right.startMs);
const ended = (object: string, outcome: string) =>
  until(`${object} ends ${outcome}`, () =>
    attemptsOf(object).find(({ attributes }) => attributes["konverge.outcome"] === outcome),
  );
const under = (parent: SeenSpan | undefined) =>
  spans.ended().filter(({ parentId }) => parentId === parent?.spanId);

test("an attempt continues the trace of its request, with a span per API call and spans of the handler", async () => {
  const { queue, key, start } = prepare({
    reconcile: async ({ object, kube }) => {
      await trace.getTracer("user").startActiveSpan("my own", async (span) => {
        await kube.mutateStatus(object, (draft) => {
          draft.status["seen"] = true;
        });
        span.end();
      });
    },
  });
  await make("one");
  await ask(queue, key("one"), parents[0]);
  await start();
  const attempt = await ended("one", "done");
  expect(attempt).toMatchObject({
    traceId: traceIds[0],
    parentId: "1".repeat(16),
    attributes: {
      "konverge.kind": "Widget",
      "konverge.resource": "widgets.tracing.test.konverge.dev",
      "k8s.namespace.name": namespace,
      "konverge.epoch": 1,
      "konverge.attempt": 1,
    },
  });
  const own = under(attempt).find(({ name }) => name === "my own");
  const calls = [...under(attempt), ...under(own)].filter(({ name }) => /^[A-Z]+ /.test(name));
  expect(calls.map(({ name }) => name)).toContain("GET widgets.tracing.test.konverge.dev");
  expect(under(own)).toContainEqual(
    expect.objectContaining({
      name: "PATCH widgets.tracing.test.konverge.dev/status",
      status: 0,
      attributes: expect.objectContaining({
        "http.request.method": "PATCH",
        "http.response.status_code": 200,
        "konverge.kube.name": "one",
        "server.address": "127.0.0.1",
      }) as unknown,
    }),
  );
  const [stored] = await until("the record is stored", async () => {
    const records = await queue.listAttempts(key("one"));
    return records.length > 0 ? records : undefined;
  });
  expect(JSON.parse(stored?.record ?? "{}")).toMatchObject({ traceId: traceIds[0] });
  await until("the log line is written", () =>
    lines.some(({ message, fields }) => {
      return message === "reconciled" && "traceId" in fields && fields.traceId === traceIds[0];
    }),
  );
});

test("coalesced requests are one attempt in the trace of the first, with links to the others", async () => {
  const { queue, key, start } = prepare({ reconcile: async () => undefined });
  await make("two");
  for (const parent of [undefined, ...parents]) await ask(queue, key("two"), parent);
  await start();
  const attempt = await ended("two", "done");
  expect(attempt).toMatchObject({ traceId: traceIds[0], parentId: "1".repeat(16) });
  // The first list of the worker's watch may have been coalesced as well.
  expect(attempt.links.slice(0, 2)).toEqual(["2".repeat(16), "3".repeat(16)]);
});

test("P7: retries of a conflict stay in the trace of their request, and a conflict is not an error", async () => {
  let interfere = true;
  const { queue, key, start } = prepare({
    conflictRetry: "job",
    reconcile: async ({ object, kube }) => {
      await kube.mutate(object, async (draft) => {
        if (interfere) {
          interfere = false;
          await client.mutate(Widgets, { namespace, name: "three" }, (other) => {
            other.spec = { foreign: true };
          });
        }
        draft.spec = { ...draft.spec, ours: true };
      });
    },
  });
  await make("three");
  await ask(queue, key("three"), parents[1]);
  await start();
  await ended("three", "done");
  const [first, second, ...more] = attemptsOf("three").filter(
    ({ traceId }) => traceId === traceIds[1],
  );
  expect(more).toEqual([]);
  expect([first, second]).toMatchObject([
    { parentId: "2".repeat(16), status: 0, attributes: { "konverge.outcome": "conflict" } },
    { parentId: "2".repeat(16), status: 0, attributes: { "konverge.outcome": "done" } },
  ]);
  expect(under(first)).toContainEqual(
    expect.objectContaining({
      status: 0,
      attributes: expect.objectContaining({
        "http.response.status_code": 409,
        "error.type": "Conflict",
      }) as unknown,
    }),
  );
});

test("a conflict resolved in the handler is an event with the competing writer", async () => {
  let interfere = true;
  const { queue, key, start } = prepare({
    reconcile: async ({ object, kube }) => {
      await kube.mutate(object, async (draft) => {
        if (interfere) {
          interfere = false;
          await client.mutate(Widgets, { namespace, name: "four" }, (other) => {
            other.spec = { foreign: true };
          });
        }
        draft.spec = { ...draft.spec, ours: true };
      });
    },
  });
  await make("four");
  await ask(queue, key("four"), parents[2]);
  await start();
  await ended("four", "done");
  const events = attemptsOf("four").flatMap((attempt) => attempt.events);
  expect(events).toMatchObject([
    {
      name: "conflict",
      attributes: {
        "konverge.conflict.managers": ["konverge-test"],
        "konverge.conflict.paths": ["spec.foreign"],
      },
    },
  ]);
});

test("a failing attempt is an error; after ten attempts each has its own trace with a link to the request", async () => {
  let runs = 0;
  const { queue, key, start } = prepare({
    reconcile: async () => {
      runs += 1;
      if (runs <= 11) throw new Error("not yet");
    },
  });
  await make("five");
  await ask(queue, key("five"), parents[0]);
  await start();
  await ended("five", "done");
  const attempts = attemptsOf("five").slice(0, 12);
  expect(attempts[0]).toMatchObject({ status: 2, message: "not yet" });
  const inTrace = attempts.map(({ traceId }) => traceId === traceIds[0]);
  expect(inTrace).toEqual([...Array(10).fill(true), false, false]);
  expect(attempts[10]).toMatchObject({ parentId: undefined, links: ["1".repeat(16)] });
});

test("a wait for a lane is a span, and a watched change starts a trace", async () => {
  const held = Promise.withResolvers<void>();
  let asked = 0;
  let inside = 0;
  const { start } = prepare({
    predicate: () => true,
    concurrency: 2,
    reconcile: async ({ object, kube }) => {
      if (!object.metadata.name.startsWith("six")) return;
      asked += 1;
      await kube.mutate({ type: Widgets, name: "six-a" }, async (draft) => {
        inside += 1;
        if (inside === 1) await held.promise;
        draft.spec = { ...draft.spec, [object.metadata.name]: true };
      });
    },
  });
  await make("six-a");
  await make("six-b");
  await start();
  await until("one is inside and the other asks", () => inside === 1 && asked === 2);
  // For a wait longer than the minimum for a span.
  setTimeout(held.resolve, 50);
  await Promise.all([ended("six-a", "done"), ended("six-b", "done")]);
  const waits = spans.ended().filter(({ name }) => name === "wait for lane");
  expect(waits.length).toBeGreaterThan(0);
  const attempt = attemptsOf("six-b")[0] as SeenSpan;
  const request = spans.ended().find(({ spanId }) => spanId === attempt.parentId);
  expect(request).toMatchObject({
    traceId: attempt.traceId,
    parentId: undefined,
    attributes: { "konverge.name": "six-b" },
  });
});

test("P12: spans contain no values that errors of an API server quote", async () => {
  const canary = "c4n4ry-v4lu3-0f-4-s3cr3t";
  await client.create(Secret, {
    metadata: { namespace, name: "seven" },
    data: { password: Buffer.from(canary).toString("base64") },
  });
  cleanup.push(() => client.delete(Secret, { namespace, name: "seven" }));
  let refusal: unknown;
  const { queue, key, start } = prepare({
    reconcile: async ({ kube }) => {
      await kube
        .mutate({ type: Secret, name: "seven" }, (draft) => {
          (draft as unknown as { data: Record<string, string> }).data["token"] = `*${canary}*`;
        })
        .catch((error: unknown) => {
          refusal = error;
          throw error;
        });
    },
  });
  await make("seven");
  await ask(queue, key("seven"), parents[0]);
  await start();
  await ended("seven", "rejected");
  expect(isKubeApiError(refusal)).toBe(true);
  const text = JSON.stringify(spans.ended());
  expect(text).toContain('"PATCH secrets"');
  expect(text).not.toContain(canary);
  expect(text).not.toContain(Buffer.from(canary).toString("base64"));
});
