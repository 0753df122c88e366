import { ensureError, KonvergeError } from "@konverge/core";
import { defineController, type AttemptKube } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { namespace, useEngines } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

describe.each(testServers())("engine on $name", (target) => {
  const engines = useEngines(target, "engine.test.konverge.dev");

  test("reconciles a change of the spec once; its own status write triggers nothing", async () => {
    const seen: string[] = [];
    const { queue, key } = await engines.start({
      reconcile: async ({ object, kube }) => {
        seen.push(`${object.metadata.name}:${JSON.stringify(object.spec?.["size"])}`);
        await kube.mutateStatus(object, (draft) => {
          draft.status["size"] = object.spec?.["size"] ?? null;
        });
      },
    });
    await engines.make("a");
    await until("the new object is reconciled", () => seen.includes("a:1"));
    await engines.client.mutate(engines.Widgets, { namespace, name: "a" }, (draft) => {
      draft.spec = { size: 2 };
    });
    await until("the change is reconciled", () => seen.includes("a:2"));
    // A later marker in the same watch, so that requests caused by the status write would have arrived.
    await engines.make("marker");
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
    // The watch delivered the object; if the machine stalls for 100 ms, it is read once more.
    expect(record.calls.count).toBeLessThanOrEqual(2);
  });

  test("an object that the watch has delivered is written without a read, and a change in between is kept", async () => {
    let interfere = true;
    const { records } = await engines.start({
      reconcile: async ({ object, kube }) => {
        await kube.mutateStatus(object, async (draft) => {
          if (object.spec?.["round"] === 2 && interfere) {
            interfere = false;
            await engines.client.mutate(engines.Widgets, { namespace, name: "f" }, (other) => {
              other.spec = { ...other.spec, foreign: true };
            });
          }
          draft.status["seen"] = object.spec?.["round"] ?? 1;
          draft.status["foreign"] = draft.spec?.["foreign"] ?? false;
        });
      },
    });
    // The minimum over several attempts: if the machine stalls for 100 ms, an object is read once more.
    const names = ["f", "g", "h", "i", "j"];
    for (const name of names) await engines.make(name);
    const firsts = await Promise.all(
      names.map((name) =>
        until(`the status of ${name} is written`, async () => (await records(name)).at(-1)?.parsed),
      ),
    );
    expect(firsts).toMatchObject(names.map(() => ({ outcome: "done" })));
    expect(Math.min(...firsts.map(({ calls }) => (calls as { count: number }).count))).toBe(1);

    await engines.client.mutate(engines.Widgets, { namespace, name: "f" }, (draft) => {
      draft.spec = { ...draft.spec, round: 2 };
    });
    await until("the status says what both wrote", async () => {
      const { status } = await engines.client.get(engines.Widgets, { namespace, name: "f" });
      return status?.["seen"] === 2 && status["foreign"] === true;
    });
    await until("the lost race is recorded", async () =>
      (await records("f")).some(
        ({ record }) => JSON.parse(record).writes[0]?.conflicts.length === 1,
      ),
    );
  });

  test("P7: with conflictRetry job a lost race is a job retry on the conflict ladder and no failure", async () => {
    let interfere = true;
    const { queue, key } = await engines.start({
      conflictRetry: "job",
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, async (draft) => {
          if (interfere) {
            interfere = false;
            await engines.client.mutate(engines.Widgets, { namespace, name: "c" }, (other) => {
              other.spec = { ...other.spec, foreign: true };
            });
          }
          draft.spec = { ...draft.spec, ours: true };
        });
      },
    });
    await engines.make("c");
    await until("both writes are there", async () => {
      const { spec } = await engines.client.get(engines.Widgets, { namespace, name: "c" });
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
    const { queue, key } = await engines.start({
      reconcile: async ({ object, kube }) => {
        await kube.mutate(object, async (draft) => {
          if (interfere) {
            interfere = false;
            await engines.client.mutate(engines.Widgets, { namespace, name: "w" }, (other) => {
              other.spec = { ...other.spec, foreign: true };
            });
          }
          draft.spec = { ...draft.spec, ours: true };
        });
      },
    });
    await engines.make("w");
    await until("the write is recorded with its conflict", async () => {
      const records = await queue.listAttempts(key("w"));
      return records.some(({ record }) => record.includes('"competingWriters":[{'));
    });
    const records = await queue.listAttempts(key("w"));
    const record =
      records.find((stored) => stored.record.includes('"competingWriters":[{'))?.record ?? "{}";
    expect(JSON.parse(record)).toMatchObject({
      outcome: "done",
      writes: [
        {
          conflicts: [
            { competingWriters: [{ manager: "konverge-test", paths: ["spec.foreign"] }] },
          ],
        },
      ],
    });
  });

  test("a thrown error is retried, a deleted object is gone, requeueAfter runs again", async () => {
    let failures = 0;
    const runs = new Map<string, number>();
    const { queue, key } = await engines.start({
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
    await Promise.all([engines.make("fails"), engines.make("again")]);
    await until("the failing key succeeds", async () => {
      const state = await queue.getKey(key("fails"));
      return state?.lastOutcome === "done";
    });
    expect(runs.get("fails")).toBe(4);
    await until("the timer fired three times", () => (runs.get("again") ?? 0) >= 3);
    await engines.client.delete(engines.Widgets, { namespace, name: "again" });
    await until("the deleted object is gone", async () => {
      return (await queue.getKey(key("again")))?.lastOutcome === "gone";
    });
  });

  test("P8: after the end of its attempt a handler's access is refused", async () => {
    let leaked: AttemptKube | undefined;
    await engines.start({
      reconcile: async ({ kube }) => {
        leaked = kube;
      },
    });
    await engines.make("leak");
    await until("the attempt has begun", () => leaked !== undefined);
    const refused = await until("the access is refused", () =>
      leaked?.get(engines.Widgets, "leak").then(() => false as const, ensureError),
    );
    expect(refused).toMatchObject({ code: "attempt_ended" });
  });

  test("a handler over its time is ended, counted as a failure and run again", async () => {
    let runs = 0;
    const { queue, key } = await engines.start({
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
    await engines.make("slow");
    await until("it succeeds in the end", async () => {
      return (await queue.getKey(key("slow")))?.lastOutcome === "done";
    });
    const records = await queue.listAttempts(key("slow"));
    expect(records.map(({ record }) => JSON.parse(record))).toMatchObject([
      { outcome: "done" },
      { outcome: "retry", error: { code: "timed_out" } },
    ]);
  });

  test("a user's cancellation aborts the handler, revokes its access and is recorded", async () => {
    const lateCalls: string[] = [];
    const { queue, key } = await engines.start({
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
    await engines.make("runaway");
    const state = await until("it runs", async () => {
      const found = await queue.getKey(key("runaway"));
      return found?.phase === "running" && found;
    });
    const requests = Array.from({ length: state.requested }, (_, n) => `${state.key}@${n + 1}`);
    const action = { by: "ada", reason: "wrong object" };
    const results = [];
    for (const id of requests) results.push(await queue.control.cancel(id, action));
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

  test("refuses to start for a kind that the cluster does not serve, with a fix", async () => {
    const missing = { ...engines.Widgets, kind: "Gadget", resource: "gadgets" };
    const controller = defineController({
      name: "gadgets",
      for: missing,
      reconcile: async () => undefined,
    });
    const startOn = (own: KubeClient) => engines.startController(controller, { client: own });
    // An unreachable server does not prove that the kind is missing.
    const deferred = new KonvergeError("deferred", "the breaker is open");
    const resolveType = () => Promise.reject(deferred);
    await expect(startOn({ ...engines.client, resolveType })).rejects.toBe(deferred);
    await expect(startOn(engines.client)).rejects.toMatchObject({
      code: "crd_mismatch",
      message: expect.stringContaining("konverge crds"),
    });
  });
});
