import { ensureError, KonvergeError, type ObjectKey, type ResourceType } from "@konverge/core";
import {
  defineController,
  startEngine,
  type AttemptKube,
  type Controller,
  type ControllerOptions,
  type Engine,
  type Log,
} from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import {
  createObjectLanes,
  createWorkQueue,
  type ObjectLanes,
  type WorkQueue,
} from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { installWidgets, removeWidgets, testServers, type Widget } from "./kube-servers.ts";
import { until, useQueues } from "./queue-harness.ts";

const GROUP = "engine.test.konverge.dev";
const namespace = "default";
const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

describe.each(testServers())("engine on $name", (target) => {
  const harness = useQueues();
  let client: KubeClient;
  let closeServer: () => Promise<void>;
  let Widgets: ResourceType<Widget>;
  let serial = 0;
  const engines = new Set<Engine>();
  const queues = new Set<WorkQueue>();
  const lanes = new Set<ObjectLanes>();

  beforeAll(async () => {
    const server = await target.open();
    client = server.client;
    closeServer = () => server.close();
    Widgets = await installWidgets(client, GROUP);
  });
  afterEach(async () => {
    await Promise.all([...engines].map((engine) => engine.stop({ graceMs: 1_000 })));
    engines.clear();
    await Promise.all([...queues].map((queue) => queue.close()));
    queues.clear();
    for (const lane of lanes) lane.close();
    lanes.clear();
    const { items } = await client.list(Widgets, { namespace });
    await Promise.all(
      items.map(({ metadata: { name } }) => client.delete(Widgets, { namespace, name })),
    );
  });
  afterAll(async () => {
    await removeWidgets(client, GROUP);
    await closeServer();
  });

  const queueFor = ({ name }: Pick<Controller, "name">) => {
    const queue = createWorkQueue({
      redis: { url: harness.url },
      controller: name,
      cluster: "default",
      prefix: harness.prefix,
    });
    queues.add(queue);
    return queue;
  };
  const lanesOf = (processId: string) => {
    const lane = createObjectLanes({
      redis: { url: harness.url },
      cluster: "default",
      prefix: harness.prefix,
      processId,
      onError: () => undefined,
    });
    lanes.add(lane);
    return lane;
  };
  const start = async (options: Omit<ControllerOptions<Widget>, "name" | "for">) => {
    const controller = defineController({ name: `widgets-${++serial}`, for: Widgets, ...options });
    const engine = await startEngine({
      controllers: [controller],
      client,
      lanes: lanesOf(`test-${process.pid}-${serial}`),
      queueFor,
      workerId: `test-${process.pid}-${serial}`,
      log: silent,
      metrics: createMetrics({ version: "test" }),
      installation: `test-${process.pid}-${Date.now()}-${serial}`,
      leaseNamespace: namespace,
      election: { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 },
    });
    engines.add(engine);
    const key = (name: string): ObjectKey => ({
      controller: controller.name,
      cluster: "default",
      resource: "widgets",
      group: GROUP,
      namespace,
      name,
    });
    return { engine, key, queue: queueFor(controller) };
  };
  const make = (name: string, spec: Widget["spec"] = { size: 1 }) =>
    client.create(Widgets, { metadata: { namespace, name }, spec });

  test("a change of the spec is reconciled once, and the own status write wakes nobody", async () => {
    const seen: string[] = [];
    const { queue, key } = await start({
      reconcile: async ({ object, kube }) => {
        seen.push(`${object.metadata.name}:${JSON.stringify(object.spec?.["size"])}`);
        await kube.mutateStatus(object, (draft) => {
          draft.status["size"] = object.spec?.["size"] ?? null;
        });
      },
    });
    await make("a");
    await until("the new object is reconciled", () => seen.includes("a:1"));
    await client.mutate(Widgets, { namespace, name: "a" }, (draft) => {
      draft.spec = { size: 2 };
    });
    await until("the change is reconciled", () => seen.includes("a:2"));
    // A marker behind it in the same watch: what the status write could have caused has been seen by then.
    await make("marker");
    await until("the marker is reconciled", () => seen.includes("marker:1"));
    expect(seen.filter((line) => line.startsWith("a:"))).toEqual(["a:1", "a:2"]);
    await until("the records are stored", async () => {
      const records = await queue.listAttempts(key("a"));
      return records.length === 2;
    });
    const [last] = await queue.listAttempts(key("a"));
    const record = JSON.parse(last?.record ?? "{}");
    expect(record).toMatchObject({
      outcome: "done",
      writes: [{ verb: "patch", subresource: "status", patch: { status: { size: 2 } } }],
    });
    // The object came with the watch; a machine that stalls for 100 ms reads it once more.
    expect(record.calls.n).toBeLessThanOrEqual(2);
  });

  test("an object that the watch has delivered is written without a read, and a change in between is kept", async () => {
    let interfere = true;
    const { queue, key } = await start({
      reconcile: async ({ object, kube }) => {
        if (object.spec?.["round"] === 2 && interfere) {
          interfere = false;
          await client.mutate(Widgets, { namespace, name: "f" }, (other) => {
            other.spec = { ...other.spec, foreign: true };
          });
        }
        await kube.mutateStatus(object, (draft) => {
          draft.status["seen"] = object.spec?.["round"] ?? 1;
          draft.status["foreign"] = draft.spec?.["foreign"] ?? false;
        });
      },
    });
    const records = async () => {
      const attempts = await queue.listAttempts(key("f"));
      return attempts.map(({ record }) => JSON.parse(record));
    };
    await make("f");
    await until("the status is written", async () => (await records()).length === 1);
    expect((await records())[0]).toMatchObject({ outcome: "done", calls: { n: 1 } });

    await client.mutate(Widgets, { namespace, name: "f" }, (draft) => {
      draft.spec = { ...draft.spec, round: 2 };
    });
    await until("the status says what both wrote", async () => {
      const { status } = await client.get(Widgets, { namespace, name: "f" });
      return status?.["seen"] === 2 && status["foreign"] === true;
    });
    await until("the lost race is recorded", async () =>
      (await records()).some(({ writes }) => writes[0]?.conflicts.length === 1),
    );
  });

  test("P7: with conflictRetry job a lost race is a job retry on the conflict ladder and no failure", async () => {
    let interfere = true;
    const { queue, key } = await start({
      conflictRetry: "job",
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, async (draft) => {
          if (interfere) {
            interfere = false;
            await client.mutate(Widgets, { namespace, name: "c" }, (other) => {
              other.spec = { ...other.spec, foreign: true };
            });
          }
          draft.spec = { ...draft.spec, ours: true };
        });
      },
    });
    await make("c");
    await until("both writes are there", async () => {
      const { spec } = await client.get(Widgets, { namespace, name: "c" });
      return spec?.["ours"] === true && spec["foreign"] === true;
    });
    await until("the conflict is recorded", async () => {
      const records = await queue.listAttempts(key("c"));
      return records.some(({ record }) => record.includes('"outcome":"conflict"'));
    });
    await until(
      "the key has succeeded",
      async () => (await queue.getKey(key("c")))?.lastOutcome === "done",
    );
    expect(await queue.getKey(key("c"))).toMatchObject({ failures: 0, conflicts: 0 });
  });

  test("P7: by default the handler's own write settles the race and names the winner", async () => {
    let interfere = true;
    const { queue, key } = await start({
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, async (draft) => {
          if (interfere) {
            interfere = false;
            await client.mutate(Widgets, { namespace, name: "w" }, (other) => {
              other.spec = { ...other.spec, foreign: true };
            });
          }
          draft.spec = { ...draft.spec, ours: true };
        });
      },
    });
    await make("w");
    await until("the write is recorded with its conflict", async () => {
      const records = await queue.listAttempts(key("w"));
      return records.some(({ record }) => record.includes('"winners":[{'));
    });
    const records = await queue.listAttempts(key("w"));
    const record = records.find((stored) => stored.record.includes('"winners":[{'))?.record ?? "{}";
    expect(JSON.parse(record)).toMatchObject({
      outcome: "done",
      writes: [
        { conflicts: [{ winners: [{ manager: "konverge-test", paths: ["spec.foreign"] }] }] },
      ],
    });
  });

  test("a thrown error is retried, a deleted object is gone, requeueAfter runs again", async () => {
    let failures = 0;
    const runs = new Map<string, number>();
    const { queue, key } = await start({
      backoff: {
        failure: { baseMs: 1, factor: 1, capMs: 1, steps: Infinity, jitter: { kind: "none" } },
      },
      reconcile: async ({ object, requeueAfter }) => {
        const { name } = object.metadata;
        runs.set(name, (runs.get(name) ?? 0) + 1);
        if (name === "fails" && failures++ < 3) throw new Error("not yet");
        return name === "again" ? requeueAfter("50ms") : undefined;
      },
    });
    await Promise.all([make("fails"), make("again")]);
    await until("the failing key succeeds", async () => {
      const state = await queue.getKey(key("fails"));
      return state?.lastOutcome === "done";
    });
    expect(runs.get("fails")).toBe(4);
    await until("the timer fired three times", () => (runs.get("again") ?? 0) >= 3);
    await client.delete(Widgets, { namespace, name: "again" });
    await until("the deleted object is gone", async () => {
      return (await queue.getKey(key("again")))?.lastOutcome === "gone";
    });
  });

  test("P8: after the end of its attempt a handler's access is refused", async () => {
    let leaked: AttemptKube | undefined;
    await start({
      reconcile: async ({ kube }) => {
        leaked = kube;
      },
    });
    await make("leak");
    await until("the attempt has begun", () => leaked !== undefined);
    const refused = await until("the access is refused", () =>
      leaked?.get(Widgets, "leak").then(() => false as const, ensureError),
    );
    expect(refused).toMatchObject({ code: "attempt_revoked" });
  });

  test("a handler over its time is ended, counted as a failure and run again", async () => {
    let runs = 0;
    const { queue, key } = await start({
      timeout: "100ms",
      backoff: {
        failure: { baseMs: 1, factor: 1, capMs: 1, steps: Infinity, jitter: { kind: "none" } },
      },
      reconcile: async ({ signal }) => {
        runs += 1;
        if (runs > 1) return;
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(ensureError(signal.reason)));
        });
      },
    });
    await make("slow");
    await until("it succeeds in the end", async () => {
      return (await queue.getKey(key("slow")))?.lastOutcome === "done";
    });
    const records = await queue.listAttempts(key("slow"));
    expect(records.map(({ record }) => JSON.parse(record))).toMatchObject([
      { outcome: "done" },
      { outcome: "retry", error: { code: "timed_out" } },
    ]);
  });

  test("a person's cancellation aborts the handler, revokes its access, and is in the record", async () => {
    const lateCalls: string[] = [];
    const { queue, key } = await start({
      reconcile: async ({ object, kube, signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await kube
          .mutateStatus(object, () => undefined)
          .catch((error: unknown) => {
            lateCalls.push(ensureError(error).message);
          });
        throw signal.reason;
      },
    });
    await make("runaway");
    const state = await until("it runs", async () => {
      const found = await queue.getKey(key("runaway"));
      return found?.phase === "running" && found;
    });
    const requests = Array.from({ length: state.requested }, (_, n) => `${state.key}@${n + 1}`);
    const order = { by: "ada", reason: "wrong object" };
    const results = [];
    for (const id of requests) results.push(await queue.control.cancel(id, order));
    expect(results).toContain("aborting");
    await until("it ended", async () => (await queue.getKey(key("runaway")))?.phase === "idle");
    const records = await queue.listAttempts(key("runaway"));
    expect(records.map(({ record }) => JSON.parse(record))).toMatchObject([
      { outcome: "cancelled" },
    ]);
    expect(lateCalls).toHaveLength(1);
    expect(await queue.getRequest(requests.at(-1) ?? "")).toMatchObject({
      phase: "finished",
      outcome: "cancelled",
      error: { message: "by ada: wrong object" },
    });
  });

  test("a kind that the cluster does not serve refuses to start, with the cure", async () => {
    const missing = { ...Widgets, kind: "Gadget", resource: "gadgets" };
    const controller = defineController({
      name: "gadgets",
      for: missing,
      reconcile: async () => undefined,
    });
    const startOn = (own: KubeClient) =>
      startEngine({
        controllers: [controller],
        client: own,
        lanes: lanesOf("test"),
        queueFor,
        workerId: "test",
        log: silent,
        metrics: createMetrics({ version: "test" }),
      });
    // A server that cannot be asked has not said that it lacks the kind.
    const deferred = new KonvergeError("deferred", "the breaker is open");
    const resolveType = () => Promise.reject(deferred);
    await expect(startOn({ ...client, resolveType })).rejects.toBe(deferred);
    await expect(startOn(client)).rejects.toMatchObject({
      code: "crd_mismatch",
      message: expect.stringContaining("konverge crds"),
    });
  });
});
