import type { ApiObject, ObjectKey, ObjectMeta, Trigger } from "@konverge/core";
import type { RequestOptions, WorkQueue } from "@konverge/queue";
import { expect, test } from "vitest";
import { defineController } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { generationChanged, type Predicate } from "../define/predicate.ts";
import { createRequestSource, type SeenChange } from "./request-source.ts";

const Pool = {
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Pool",
  resource: "pools",
  scope: "Namespaced",
} as const;
const controller = defineController({
  name: "pool",
  for: Pool,
  reconcile: async () => undefined,
  cleanup: async () => undefined,
});
const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

/** Only asks are of interest here; what the queue makes of them is tested on a real Redis. */
function setUp(of = controller) {
  const keys: ObjectKey[] = [];
  const asked: (RequestOptions | undefined)[] = [];
  const triggers: Trigger[] = [];
  const queue: Pick<WorkQueue, "cluster" | "submit"> = {
    cluster: "default",
    submit: async (key, trigger, how) => {
      keys.push(key);
      asked.push(how);
      triggers.push(trigger);
    },
  };
  const source = createRequestSource(of, queue as WorkQueue, {
    log: silent,
    isSensitive: () => false,
    onError: () => undefined,
  });
  return { source, keys, asked, triggers };
}
const pool = (metadata: Partial<ObjectMeta> = {}): ApiObject => ({
  apiVersion: "demo.konverge.dev/v1",
  kind: "Pool",
  metadata: { name: "a", namespace: "demo", uid: "1", generation: 1, ...metadata },
});
const [ofKind] = controller.sources;
const nothing = () => undefined;
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };

test("requests of lists and resyncs come after events, except deletions, which are not new events", async () => {
  const { source, asked } = setUp();
  for (const object of [pool(), pool(deleted)]) {
    source.onChange(ofKind, { kind: "added", initial: true, object, seen: {} }, nothing);
    await source.resync(object, { reason: "resync interval", seen: {} });
  }
  expect(asked).toEqual([
    { class: "background", uid: "1" },
    { class: "background", uid: "1" },
    { class: "event", news: false, uid: "1" },
    { class: "event", news: false, uid: "1" },
  ]);
});

test("ignores the addition of the own finalizer, but not its removal or other finalizers", async () => {
  const { source, asked } = setUp();
  const bare = pool();
  const own = pool({ finalizers: [controller.finalizer] });
  const foreign = pool({ finalizers: ["example.com/x"] });
  const change = (previous: ApiObject, object: ApiObject) => {
    asked.length = 0;
    const seen = { kind: "changed", initial: false, seen: {}, object, previous } as const;
    source.onChange(ofKind, seen, nothing);
    return asked.length;
  };
  expect(change(bare, own)).toBe(0);
  expect(change(own, bare)).toBe(1);
  expect(change(bare, foreign)).toBe(1);
  expect(change(own, pool({ ...own.metadata, ...deleted }))).toBe(1);
});

const owner = { apiVersion: "demo.konverge.dev/v1", kind: "Pool", name: "a", uid: "1" };
const child = (metadata: Partial<ObjectMeta> = {}) =>
  pool({ name: "child", ownerReferences: [{ ...owner, controller: true }], ...metadata });

/** A controller with one more source than its kind. */
function withSource(
  source: Pick<Parameters<typeof defineController>[0], "owns" | "watches">,
  scope: "Namespaced" | "Cluster" = "Namespaced",
) {
  const own = { ...Pool, scope };
  const defined = defineController({
    name: "pool",
    for: own,
    ...source,
    reconcile: async () => undefined,
  });
  const started = setUp(defined);
  const [, of = ofKind] = defined.sources;
  return {
    ...started,
    /** The number of requests for a change. */
    count: (change: Pick<SeenChange, "kind" | "object" | "previous">) => {
      started.asked.length = 0;
      started.source.onChange(of, { ...change, initial: false, seen: {} }, nothing);
      return started.asked.length;
    },
    of,
  };
}

test("requests for a changed child carry the owner's version in the leader's watch", async () => {
  const { source, of, triggers } = withSource({ owns: [Pool] });
  const change = { kind: "added", initial: false, object: child(), seen: {} } as const;
  source.onChange(of, change, ({ name }) => (name === "a" ? "7" : undefined));
  source.onChange(of, change, nothing);
  expect(triggers.map(({ resourceVersion }) => resourceVersion)).toEqual(["7", undefined]);
});

test("a cluster-scoped owner of an object in a namespace has one key, without the namespace", () => {
  const { source, of, keys } = withSource({ owns: [Pool] }, "Cluster");
  const known: (string | undefined)[] = [];
  const change = { kind: "added", initial: false, object: child(), seen: {} } as const;
  source.onChange(of, change, ({ namespace }) => {
    known.push(namespace);
    return undefined;
  });
  expect(keys.map(({ namespace, name }) => [namespace, name])).toEqual([[undefined, "a"]]);
  expect(known).toEqual([undefined]);
});

test.each(["owns", "watches"] as const)(
  "the predicate of %s filters changes, but neither new nor deleted objects",
  (option) => {
    const source = { type: Pool, predicate: generationChanged };
    const map = () => [{ namespace: "demo", name: "a" }];
    const { count } = withSource(
      option === "owns" ? { owns: [source] } : { watches: [{ ...source, map }] },
    );
    const [first, same, next] = [child(), child({ labels: { a: "b" } }), child({ generation: 2 })];
    expect(count({ kind: "added", object: first })).toBe(1);
    expect(count({ kind: "changed", object: same, previous: first })).toBe(0);
    expect(count({ kind: "changed", object: next, previous: same })).toBe(1);
    expect(count({ kind: "deleted", object: next, previous: next })).toBe(1);
    const terminating = child({ generation: 2, ...deleted });
    expect(count({ kind: "changed", object: terminating, previous: next })).toBe(1);
  },
);

test("changes of the managed fields of owned objects do not count, changes of the status do", () => {
  const { count } = withSource({ owns: [Pool] });
  const first = child({ resourceVersion: "1" });
  const rewritten = child({ resourceVersion: "2", managedFields: [{ manager: "kubectl" }] });
  expect(count({ kind: "changed", object: rewritten, previous: first })).toBe(0);
  const ready = { ...first, status: { ready: 1 } } as ApiObject;
  expect(count({ kind: "changed", object: ready, previous: first })).toBe(1);
});

test("an object that changes its owner requests both, whatever the predicate compares", () => {
  const never: Predicate = () => false;
  const { count, keys } = withSource({ owns: [{ type: Pool, predicate: never }] });
  const adopted = child({ ownerReferences: [{ ...owner, name: "b", controller: true }] });
  expect(count({ kind: "changed", object: adopted, previous: child() })).toBe(2);
  expect(keys.map(({ name }) => name)).toEqual(["b", "a"]);
});
