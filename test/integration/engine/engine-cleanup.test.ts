import { createLocalGate } from "@konverge/core";
import { createKubeClient, ignoreNotFound, loadKubeCredentials } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

const FOREIGN = "example.com/foreign";

describe.each(testServers())("cleanup on $name", (target) => {
  const harness = useEngines(target, "cleanup.test.konverge.dev");
  const find = (name: string) =>
    harness.client.get(harness.Widgets, { namespace, name }).catch(ignoreNotFound);
  const finalizersOf = async (name: string) => (await find(name))?.metadata.finalizers ?? [];
  const remove = (name: string) => harness.client.delete(harness.Widgets, { namespace, name });
  const isGone = async (name: string) => (await find(name)) === undefined;

  test("sets the finalizer before the first reconcile, runs cleanup instead on deletion, and then releases the object", async () => {
    const calls: string[] = [];
    const { controller } = await harness.start({
      reconcile: async ({ object, handler }) => {
        calls.push(`${handler} ${object.metadata.finalizers?.join()}`);
      },
      cleanup: async ({ handler }) => {
        calls.push(handler);
      },
    });
    await harness.make("a");
    await until("it is reconciled", () => calls.length === 1);
    await remove("a");
    await until("it is gone", () => isGone("a"));
    expect(controller.finalizer).toBe(`konverge.dev/${controller.name}`);
    expect(calls).toEqual([`reconcile ${controller.finalizer}`, "cleanup"]);
  });

  test("keeps the finalizer while cleanup fails, waits or requeues, and never removes other finalizers", async () => {
    let runs = 0;
    const { records } = await harness.start({
      backoff: eager,
      reconcile: async () => undefined,
      cleanup: async ({ requeueAfter, object, kube }) => {
        runs += 1;
        if (runs === 1) throw new Error("the other side is away");
        if (runs === 2) return requeueAfter("1ms");
        // A label is added between our read and our removal of the finalizer.
        await kube.mutate(object, (draft) => {
          draft.metadata.labels = { seen: "yes" };
        });
        return undefined;
      },
    });
    await harness.make("b", {}, { finalizers: [FOREIGN] });
    await until("it is held", async () => (await finalizersOf("b")).length === 2);
    await remove("b");
    await until("ours is removed", async () => (await finalizersOf("b")).join() === FOREIGN);
    expect(runs).toBe(3);
    expect((await find("b"))?.metadata.labels).toEqual({ seen: "yes" });
    const outcomes = (await records("b")).map(({ outcome }) => outcome);
    expect(outcomes.toReversed().filter((outcome) => outcome !== "done")).toEqual([
      "retry",
      "requeueAfter",
    ]);
    await harness.client.mutate(harness.Widgets, { namespace, name: "b" }, (draft) => {
      delete draft.metadata.finalizers;
    });
    await until("it is gone", () => isGone("b"));
    expect(runs).toBe(3);
  });

  test("does not restore a finalizer that its owner removes during our cleanup", async () => {
    let cleanups = 0;
    await harness.start({
      backoff: eager,
      conflictRetry: "job",
      reconcile: async () => undefined,
      cleanup: async ({ object }) => {
        cleanups += 1;
        expect(object.metadata.finalizers).toContain(FOREIGN);
        await harness.client.mutate(harness.Widgets, { namespace, name: "c" }, (draft) => {
          const { finalizers = [] } = draft.metadata;
          draft.metadata.finalizers = finalizers.filter((finalizer) => finalizer !== FOREIGN);
        });
      },
    });
    await harness.make("c", {}, { finalizers: [FOREIGN] });
    await until("it is held", async () => (await finalizersOf("c")).length === 2);
    await remove("c");
    await until("it is gone", () => isGone("c"));
    expect(cleanups).toBe(1);
  });

  test("runs no cleanup for an object deleted before it had the finalizer, or that lost the finalizer", async () => {
    let cleanups = 0;
    const { records } = await harness.start({
      reconcile: async () => undefined,
      cleanup: async () => {
        cleanups += 1;
      },
    });
    await harness.make("d", {}, { finalizers: [FOREIGN] });
    await until("it is held", async () => (await finalizersOf("d")).length === 2);
    await harness.client.mutate(harness.Widgets, { namespace, name: "d" }, (draft) => {
      draft.metadata.finalizers = [FOREIGN];
    });
    await until("it is held again", async () => (await finalizersOf("d")).length === 2);
    await remove("d");
    await until("ours is removed", async () => (await finalizersOf("d")).join() === FOREIGN);
    expect(cleanups).toBe(1);
    await harness.client.mutate(harness.Widgets, { namespace, name: "d" }, (draft) => {
      draft.metadata.annotations = { "konverge.dev/requested-at": "now" };
    });
    const before = (await records("d")).length;
    await until("it was looked at", async () => (await records("d")).length > before);
    expect(cleanups).toBe(1);
  });

  test("adds no finalizer to an object deleted after our read, and ends done", async () => {
    const open = createLocalGate({ ratePerSecond: 2_000, burst: 2_000 });
    let deleted = false;
    const client = createKubeClient({
      credentials: loadKubeCredentials(harness.kubeconfig),
      gate: {
        admit: async (call, options) => {
          if (call.verb === "patch" && !deleted) {
            deleted = true;
            await remove("raced");
          }
          return open.admit(call, options);
        },
      },
      userAgent: "konverge-test/1",
    });
    const calls: string[] = [];
    const { records } = await harness.start(
      {
        reconcile: async () => void calls.push("reconcile"),
        cleanup: async () => void calls.push("cleanup"),
      },
      { client },
    );
    await harness.make("raced", {}, { finalizers: [FOREIGN] });
    const first = await until("it is recorded", async () => (await records("raced")).at(-1));
    expect(first.outcome).toBe("done");
    expect(await finalizersOf("raced")).toEqual([FOREIGN]);
    expect(calls).toEqual([]);
    await client.close();
  });

  test("ends gone if the object is deleted during its cleanup", async () => {
    let cleanups = 0;
    const { queue, key } = await harness.start({
      reconcile: async () => undefined,
      cleanup: async () => {
        cleanups += 1;
        await harness.client.mutate(harness.Widgets, { namespace, name: "e" }, (draft) => {
          delete draft.metadata.finalizers;
        });
      },
    });
    await harness.make("e");
    await until("it is held", async () => (await finalizersOf("e")).length === 1);
    await remove("e");
    await until(
      "the key is gone",
      async () => (await queue.getKey(key("e")))?.lastOutcome === "gone",
    );
    expect(cleanups).toBe(1);
  });

  test("warns about a removed cleanup at startup and in the attempt; abandon removes the finalizers", async () => {
    const name = "left-behind";
    const own = `konverge.dev/${name}`;
    await harness.make("f", {}, { finalizers: [own] });
    await harness.make("g", {}, { finalizers: [own, FOREIGN] });
    await remove("f");
    const seen: Widget[] = [];
    const first = await harness.start({ name, reconcile: async () => undefined });
    const messages = () => first.lines.filter(({ level }) => level === "warn");
    expect(messages()).toMatchObject([
      { fields: { controller: name, objects: 2, fix: expect.stringContaining("abandon") } },
    ]);
    await until("the attempt says it", () =>
      messages().some(({ message }) => message.startsWith("deletion blocked by this controller")),
    );
    await first.engine.stop();
    await harness.start({
      name,
      cleanup: "abandon",
      reconcile: async ({ object }) => {
        seen.push(object);
      },
    });
    await until("the deleted one is gone", () => isGone("f"));
    await until("the living one is free", async () => (await finalizersOf("g")).join() === FOREIGN);
    await until("it is reconciled", () => seen.length > 0);
    for (const { metadata } of seen) {
      expect(metadata).toMatchObject({ name: "g", finalizers: [FOREIGN] });
    }
  });
});
