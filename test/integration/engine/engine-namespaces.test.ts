import { ensureError } from "@konverge/core";
import { defineController, type NamespaceSelection } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { eager, namespace, useEngines, type StartedEngine } from "./engine-harness.ts";
import { NamespaceLives } from "./namespace-lives.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const STEPS = isLongRun ? 300 : 40;
/** Steps between two comparisons, on average. */
const STEPS_PER_REST = 8;

describe.each(testServers())("namespaces by labels on $name", (target) => {
  const harness = useEngines(target, "widgets.namespaces.test.konverge.dev");

  test(`random lives of namespaces end in the expected objects and caches (KONVERGE_TEST_SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    const label = `scope-${process.pid}`;
    const names = ["one", "two", "three"].map((name) => `ns-${process.pid}-${name}`);
    const { client, Widgets } = harness;
    const lives = new NamespaceLives({ client, Widgets, names, label, random });
    const sizes = new Map<string, unknown>();
    let lists: { readonly namespace: string; readonly found: string[] }[] = [];
    // A part of the sources follows the namespaces of the process, a part has its own selector.
    const own: { namespaces?: NamespaceSelection } =
      random() < 0.5 ? { namespaces: { labels: `${label}=in` } } : {};
    const allowed: { namespaces?: NamespaceSelection } =
      own.namespaces === undefined ? { namespaces: { labels: `${label} in (in)` } } : {};
    const controller = defineController({
      name: "lives",
      for: { type: Widgets, ...own },
      owns: [{ type: ConfigMap, ...own }],
      backoff: eager,
      async reconcile({ object, kube, requeueAfter }) {
        const { namespace: inside, name } = object.metadata;
        sizes.set(`${inside}/${name}`, object.spec?.["size"]);
        for (const each of names) {
          const listed = await kube.list(ConfigMap, { namespace: each });
          lists.push({ namespace: each, found: listed.map(({ metadata }) => metadata.name) });
        }
        return requeueAfter("1h");
      },
    });
    const watcher = await harness.startController(controller, {
      ...allowed,
      role: "watch",
      installation: label,
    });
    const worker = await harness.startController(controller, {
      ...allowed,
      role: "work",
      installation: label,
    });

    const keysOf = async () => {
      const keys: string[] = [];
      for await (const page of worker.queue.listKeys()) {
        keys.push(...page.map((key) => `${key.namespace}/${key.name}`));
      }
      return keys.toSorted();
    };
    const timers = async () => {
      const { prefix, redis } = harness.queues;
      return redis.zcard(queueNames(prefix, "default", "lives").timers);
    };
    const compare = async () => {
      const { widgets, configs } = lives.expected;
      await until("all objects are reconciled, and nothing else is left", async () => {
        const isReconciled = [...widgets].every(([key, size]) => sizes.get(key) === size);
        if (!isReconciled || (await timers()) !== widgets.size) return false;
        return JSON.stringify(await keysOf()) === JSON.stringify([...widgets.keys()].toSorted());
      }).catch(async (error: unknown) => {
        const keys = await keysOf();
        const states = await Promise.all(
          keys.map((key) => {
            const [inside = "", name = ""] = key.split("/");
            return worker.queue.getKey({ ...worker.key(name), namespace: inside });
          }),
        );
        const found = { keys, states, timers: await timers(), sizes: [...sizes] };
        throw new Error(JSON.stringify({ expected: [...widgets], ...found }), { cause: error });
      });
      await until("the caches have the objects of the scope", async () => {
        const cached = await cachedObjects(watcher);
        const sizeOf = (resource: string) => cached[resource] ?? 0;
        return sizeOf(Widgets.resource) === widgets.size && sizeOf("configmaps") === configs;
      });
      if (widgets.size === 0) return;
      // Lists of all namespaces, from the cache or not, are those of the API server.
      lists = [];
      const [first = ""] = widgets.keys();
      const [inside = "", name = ""] = first.split("/");
      const key = { ...worker.key(name), namespace: inside };
      await worker.queue.request(key, { kind: "http" }, { class: "interactive" });
      const found = await until("it lists all namespaces", () => {
        return lists.length >= names.length && lists.slice(-names.length);
      });
      for (const each of found) {
        const { items } = await client.list(ConfigMap, { namespace: each.namespace });
        const wanted = items.map(({ metadata }) => metadata.name);
        expect(each.found.toSorted()).toEqual(wanted.toSorted());
      }
    };

    for (let step = 0; step < STEPS; step += 1) {
      await lives.step();
      if (random() < 1 / STEPS_PER_REST) await compare();
    }
    await compare();
    await lives.removeAll();
    await compare();
    const failed = [...watcher.lines, ...worker.lines].filter(({ level }) => level === "error");
    expect(failed).toEqual([]);
  });

  test("an attempt reads the Namespace if its worker may not have seen the last change of it", async () => {
    const label = `late-${process.pid}`;
    const labels = { [label]: "in" };
    const [early, late] = [`ns-${process.pid}-early`, `ns-${process.pid}-late`];
    const { client, Widgets } = harness;
    const metadata = { namespace: early, name: "a" };
    await client.create(Namespace, { metadata: { name: early, labels } });
    await client.create(Widgets, { metadata, spec: {} });
    const reconciled: (string | undefined)[] = [];
    const { queue, key } = await harness.startController(
      defineController({
        name: "late",
        for: Widgets,
        async reconcile({ object }) {
          reconciled.push(object.metadata.namespace);
        },
      }),
      // No leader: only the requests of the test. The watch of namespaces lists them, and then sees no change.
      { namespaces: { labels: `${label}=in` }, role: "work", client: withoutEvents(client) },
    );
    const request = async (inside: string, seen: Readonly<Record<string, string>> = {}) => {
      const of = { ...key("a"), namespace: inside };
      const { number } = await queue.request(of, { kind: "http", seen });
      const ended = await until("it is finished", async () => {
        const state = await queue.getKey(of);
        return state !== undefined && state.finished >= number && state;
      });
      return ended.lastOutcome;
    };
    expect(await request(early)).toBe("done");
    await client.create(Namespace, { metadata: { name: late, labels } });
    await client.create(Widgets, { metadata: { ...metadata, namespace: late }, spec: {} });
    expect(await request(late)).toBe("done");
    expect(reconciled).toEqual([early, late]);
    const left = await client.mutate(Namespace, { name: early }, (draft) => {
      delete draft.metadata.labels?.[label];
    });
    const version = left.object.metadata.resourceVersion ?? "";
    expect(await request(early, { namespaces: version })).toBe("gone");
    expect(reconciled).toEqual([early, late]);
    for (const inside of [early, late]) {
      await client.delete(Widgets, { ...metadata, namespace: inside });
      await client.delete(Namespace, { name: inside });
    }
  });

  test("a worker whose handlers do not list has no cache, and one whose handlers list has", async () => {
    const { client, Widgets } = harness;
    const inside = { namespace, name: "child" };
    await client.create(ConfigMap, { metadata: inside, data: {} });
    await harness.make("owner");
    for (const lists of [false, true]) {
      const { queue, key, metrics } = await harness.startController(
        defineController({
          name: `lists-${lists}`,
          for: Widgets,
          owns: [ConfigMap],
          async reconcile({ object, kube }) {
            await kube.get(ConfigMap, inside);
            await kube.mutate(object, (draft) => {
              draft.spec = { size: 2 };
            });
            if (lists) await kube.list(ConfigMap);
          },
        }),
        { role: "work" },
      );
      const { number } = await queue.request(key("owner"), { kind: "http" });
      await until("it is finished", async () => {
        const state = await queue.getKey(key("owner"));
        return state !== undefined && state.finished >= number;
      });
      const caches = metrics.measureCaches();
      expect(caches.map(({ resource }) => resource)).toEqual(lists ? ["configmaps"] : []);
      if (lists) expect(caches[0]?.objects).toBeGreaterThan(0);
    }
    await client.delete(ConfigMap, inside);
  });

  test("an object for which an index function throws is left out of lists by the index, cached or not", async () => {
    const { client, Widgets } = harness;
    const listed: (readonly string[])[] = [];
    for (const name of ["broken", "sound"]) {
      const labels = { tier: name === "sound" ? "front" : "none" };
      await client.create(ConfigMap, { metadata: { namespace, name, labels }, data: {} });
    }
    const { records, lines, metrics } = await harness.startController(
      defineController({
        name: "by-tier",
        for: { type: Widgets, namespaces: [namespace] },
        watches: [
          {
            type: ConfigMap,
            labels: "tier",
            indexes: {
              byTier({ metadata }) {
                if (metadata.name === "broken") throw new TypeError("a label is missing");
                return metadata.labels?.["tier"];
              },
            },
            map: () => [],
          },
        ],
        async reconcile({ kube }) {
          for (const labelSelector of ["tier", "tier!=x"]) {
            const found = await kube.list(ConfigMap, { labelSelector, index: { byTier: "front" } });
            listed.push(found.map(({ metadata }) => metadata.name));
          }
        },
      }),
    );
    await harness.make("lister");
    await until("it has ended", async () => (await records("lister")).length > 0);
    expect((await records("lister")).map(({ parsed }) => parsed.outcome)).toEqual(["done"]);
    expect(listed).toEqual([["sound"], ["sound"]]);
    const logged = lines.filter(({ message }) => message === "index function threw");
    const fields = { index: "byTier", kind: "ConfigMap", namespace, object: "broken" };
    // Once for the cache, and once for the list from the API server.
    expect(logged.map((line) => line.fields)).toEqual([
      expect.objectContaining(fields),
      expect.objectContaining(fields),
    ]);
    expect(await metrics.text()).toMatch(
      /konverge_watch_function_errors_total\{[^}]*controller="by-tier",function="index"[^}]*\} 1/,
    );
    for (const name of ["broken", "sound"]) await client.delete(ConfigMap, { namespace, name });
  });

  test("names outside of the worker's namespaces stop it at start", async () => {
    const type = harness.Widgets;
    const start = (namespaces: NamespaceSelection) =>
      harness.startController(
        defineController({
          name: "outside",
          for: type,
          owns: [{ type: ConfigMap, namespaces }],
          reconcile: async () => undefined,
        }),
        { namespaces: [namespace] },
      );
    await expect(start(["shop", "staging"])).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining(
        `controller "outside": owns[0].namespaces: none of shop, staging is a namespace of the worker (${namespace})`,
      ) as unknown,
    });
    await expect(start({ labels: "team=shop" })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining(
        "owns[0].namespaces: labels need access to all Namespace objects",
      ) as unknown,
    });
  });
});

/** Delays all events of Namespaces until the watch is stopped. */
function withoutEvents(client: KubeClient): KubeClient {
  return {
    ...client,
    watch: (type, options) =>
      type.resource === "namespaces" ? untilAborted(options?.signal) : client.watch(type, options),
  };
}

function untilAborted(signal: AbortSignal | undefined): AsyncIterable<never> {
  const next = () =>
    new Promise<never>((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(ensureError(signal.reason)), { once: true });
    });
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Cached objects by resource, as in the metrics. */
async function cachedObjects({ metrics }: StartedEngine): Promise<Record<string, number>> {
  const text = await metrics.text();
  const lines = text.matchAll(
    /^konverge_cache_objects\{[^}]*resource="([^."]+)[^"]*"[^}]*\} (\d+)$/gm,
  );
  return Object.fromEntries(
    [...lines].map(([, resource = "", count]) => [resource, Number(count)]),
  );
}
