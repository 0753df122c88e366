import { createLocalGate, defined, KonvergeError, type Gate } from "@konverge/core";
import { anyOf, generationChanged, labelsChanged, type Middleware } from "@konverge/engine";
import { createKubeClient, loadKubeCredentials } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

describe.each(testServers())("the options of a controller on $name", (target) => {
  const harness = useEngines(target, "options.test.konverge.dev");
  const change = (name: string, edit: (draft: Widget) => void) =>
    harness.client.mutate(harness.Widgets, { namespace, name }, edit);
  const open = createLocalGate({ ratePerSecond: 2_000, burst: 2_000 });
  /** A client whose calls pass `gate`. */
  const guarded = (gate: Gate) =>
    createKubeClient({
      credentials: loadKubeCredentials(harness.kubeconfig),
      gate,
      userAgent: "konverge-test/1",
    });

  test("runs middleware of the configuration outside that of the controller, and lets it skip the handler", async () => {
    const seen: string[] = [];
    const around =
      (title: string): Middleware =>
      async ({ object, handler }, next) => {
        const name = `${title} ${handler} ${object.metadata.name}`;
        seen.push(`${name} in`);
        await next();
        seen.push(`${name} out`);
      };
    const ofTenant: Middleware = async ({ object, awaitChange }, next) =>
      object.metadata.labels?.["tenant"] === "ours" ? next() : awaitChange();
    const { records } = await harness.start(
      {
        use: [around("inner"), ofTenant],
        reconcile: async ({ object, requeueAfter }) => {
          seen.push(`reconcile ${object.metadata.name}`);
          return requeueAfter("1h");
        },
      },
      { use: [around("outer")] },
    );
    await harness.make("a", {}, { labels: { tenant: "ours" } });
    await harness.make("b");
    const first = await until("a is recorded", async () => (await records("a"))[0]);
    const second = await until("b is recorded", async () => (await records("b"))[0]);
    expect(first).toMatchObject({ outcome: "requeueAfter", parsed: { afterMs: 3_600_000 } });
    expect(second.outcome).toBe("awaitChange");
    expect(seen.filter((line) => line.includes(" a"))).toEqual([
      "outer reconcile a in",
      "inner reconcile a in",
      "reconcile a",
      "inner reconcile a out",
      "outer reconcile a out",
    ]);
    expect(seen).not.toContain("reconcile b");
  });

  test("ends an attempt with a deferred call as deferred and uncounted, whatever the handler returns", async () => {
    let refusals = 2;
    const client = guarded({
      admit: async (call, options) => {
        if (call.verb === "create" && call.resource.startsWith("widgets") && refusals-- > 0) {
          throw new KonvergeError("deferred", "the breaker is open", { retryAfterMs: 5 });
        }
        return open.admit(call, options);
      },
    });
    const attempts: number[] = [];
    const { queue, key, records } = await harness.start(
      {
        reconcile: async ({ object, kube, attempt, awaitChange }) => {
          if (object.metadata.name !== "parent") return undefined;
          attempts.push(attempt);
          await kube.create(harness.Widgets, { name: "child" }).catch(() => undefined);
          return awaitChange();
        },
      },
      { client },
    );
    await harness.make("parent");
    await until(
      "it got through",
      async () => (await queue.getKey(key("parent")))?.lastOutcome === "awaitChange",
    );
    expect((await records("parent")).map(({ outcome }) => outcome)).toEqual([
      "awaitChange",
      "deferred",
      "deferred",
    ]);
    expect(attempts).toEqual([1, 1, 1]);
    await client.close();
  });

  test("owns: changes and deletions of a child reconcile the owner, and lists include own writes immediately", async () => {
    const counts: number[] = [];
    await harness.start({
      owns: [ConfigMap],
      reconcile: async ({ object, kube }) => {
        const before = await kube.list(ConfigMap, { ownedBy: object });
        if (before.length === 0)
          await kube.create(ConfigMap, { name: "option-child", ownedBy: object });
        counts.push((await kube.list(ConfigMap, { ownedBy: object })).length);
      },
    });
    await harness.make("owner");
    await until("it has made its child", () => counts.length > 0);
    const soFar = counts.length;
    await harness.client.delete(ConfigMap, { namespace, name: "option-child" });
    await until("the child is made again", async () => {
      const { items } = await harness.client.list(ConfigMap, { namespace });
      return (
        counts.length > soFar && items.some(({ metadata }) => metadata.name === "option-child")
      );
    });
    expect(new Set(counts)).toEqual(new Set([1]));
    await harness.client.delete(ConfigMap, { namespace, name: "option-child" });
  });

  test("watches: a change reconciles the objects of the old and the new state", async () => {
    const seen: string[] = [];
    await harness.start({
      predicate: () => false,
      watches: [
        {
          type: ConfigMap,
          map: ({ metadata }) =>
            [metadata.labels?.["for"] ?? ""].filter(Boolean).map((name) => ({ namespace, name })),
        },
      ],
      reconcile: async ({ object, triggers }) => {
        seen.push(`${object.metadata.name} by ${triggers.at(-1)?.by ?? ""}`);
      },
    });
    await harness.make("one");
    await harness.make("two");
    await until("both are known", () => seen.length >= 2);
    seen.length = 0;
    const map = { namespace, name: "settings" };
    await harness.client.create(ConfigMap, { metadata: { ...map, labels: { for: "one" } } });
    await until("the new one counts", () => seen.includes("one by watch ConfigMap"));
    seen.length = 0;
    await harness.client.mutate(ConfigMap, map, (draft) => {
      draft.metadata.labels = { for: "two" };
    });
    await until("the old and the new one count", () => new Set(seen).size === 2);
    expect(new Set(seen)).toEqual(new Set(["one by watch ConfigMap", "two by watch ConfigMap"]));
    await harness.client.delete(ConfigMap, map);
  });

  test("predicate: selects changes; deletions and user requests always pass", async () => {
    const seen: string[] = [];
    await harness.start({
      predicate: anyOf(generationChanged, labelsChanged),
      reconcile: async ({ object: { metadata } }) => {
        const { labels, annotations } = metadata;
        seen.push(`${metadata.name} ${labels?.["l"] ?? "-"} ${annotations?.["a"] ?? "-"}`);
      },
    });
    await harness.make("w");
    await until("it is known", () => seen.includes("w - -"));
    await change("w", (draft) => {
      draft.metadata.annotations = { a: "unwanted" };
    });
    await harness.make("marker");
    await until("the marker is known", () => seen.includes("marker - -"));
    expect(seen.filter((line) => line.startsWith("w"))).toEqual(["w - -"]);
    await change("w", (draft) => {
      draft.metadata.labels = { l: "wanted" };
    });
    await until("the label counts", () => seen.includes("w wanted unwanted"));
    await change("w", (draft) => {
      draft.metadata.annotations = { a: "asked", "konverge.dev/requested-at": "now" };
    });
    await until("a user request starts it", () => seen.includes("w wanted asked"));
  });

  test("resync reconciles every object repeatedly, spread over the interval", async () => {
    const runs = new Map<string, number>();
    await harness.start({
      resync: "1s",
      reconcile: async ({ object: { metadata } }) => {
        runs.set(metadata.name, (runs.get(metadata.name) ?? 0) + 1);
      },
    });
    await Promise.all(["r1", "r2"].map((name) => harness.make(name)));
    await until("both ran four times", () =>
      ["r1", "r2"].every((name) => (runs.get(name) ?? 0) >= 4),
    );
    expect([...runs.keys()].toSorted()).toEqual(["r1", "r2"]);
  });

  test("concurrency limits concurrent attempts", async () => {
    let active = 0;
    let most = 0;
    let ended = 0;
    const gate = Promise.withResolvers<void>();
    await harness.start({
      concurrency: 2,
      reconcile: async () => {
        active += 1;
        most = Math.max(most, active);
        await gate.promise;
        active -= 1;
        ended += 1;
      },
    });
    await Promise.all(["c1", "c2", "c3", "c4"].map((name) => harness.make(name)));
    await until("two run", () => active === 2);
    gate.resolve();
    await until("all have run", () => ended >= 4);
    expect(most).toBe(2);
  });

  test.each<{
    readonly conflictRetry: "inline" | "both" | "job";
    readonly inline?: { readonly steps: number };
    readonly attempts: number;
  }>([
    // The default has eight tries; in-handler retries have no such limit.
    { conflictRetry: "inline", attempts: 1 },
    { conflictRetry: "both", attempts: 2 },
    { conflictRetry: "both", inline: { steps: 2 }, attempts: 4 },
    { conflictRetry: "job", attempts: 11 },
  ])(
    "conflictRetry $conflictRetry, backoff.inline $inline: ten lost races are $attempts attempts",
    async (row) => {
      let races = 10;
      const { queue, key, records } = await harness.start({
        conflictRetry: row.conflictRetry,
        backoff: { ...eager, ...defined({ inline: row.inline }) },
        reconcile: async ({ object, kube }) => {
          await kube.mutate(object, async (draft) => {
            if (races > 0) {
              races -= 1;
              await change("fought", (other) => {
                other.spec = { ...other.spec, foreign: races };
              });
            }
            draft.spec = { ...draft.spec, ours: true };
          });
        },
      });
      await harness.make("fought");
      await until("our write is there", async () => {
        const { spec } = await harness.client.get(harness.Widgets, { namespace, name: "fought" });
        return spec?.["ours"] === true;
      });
      await until("it is done", async () => (await queue.getKey(key("fought")))?.phase === "idle");
      const all = (await records("fought")).toReversed();
      const first = all.findIndex(({ outcome }) => outcome === "done");
      expect(first + 1).toBe(row.attempts);
      expect(all.slice(0, first).every(({ outcome }) => outcome === "conflict")).toBe(true);
      expect(await queue.getKey(key("fought"))).toMatchObject({ failures: 0, conflicts: 0 });
    },
  );

  test("its own finalizer costs the controller one call and is not a new event", async () => {
    const runs: string[] = [];
    const { records } = await harness.start({
      reconcile: async ({ object }) => void runs.push(object.metadata.name),
      cleanup: async () => undefined,
    });
    await harness.make("held");
    await until("it is reconciled", () => runs.includes("held"));
    await harness.make("marker");
    await until("the marker is reconciled", () => runs.includes("marker"));
    expect(runs).toEqual(["held", "marker"]);
    const [record] = await records("held");
    // One call, plus a read if the watch is behind the request.
    expect([1, 2]).toContain((record?.parsed["calls"] as { count: number } | undefined)?.count);
    for (const name of ["held", "marker"]) {
      await harness.client.delete(harness.Widgets, { namespace, name });
    }
  });
});
