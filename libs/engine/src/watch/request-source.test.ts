import type { ApiObject, ObjectKey, ObjectMeta, Trigger } from "@konverge/core";
import type { RequestOptions, WorkQueue } from "@konverge/queue";
import { expect, test } from "vitest";
import { defineController } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { generationChanged } from "../define/predicate.ts";
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
  });
  return { source, keys, asked, triggers };
}
const pool = (metadata: Partial<ObjectMeta> = {}): ApiObject => ({
  apiVersion: "demo.konverge.dev/v1",
  kind: "Pool",
  metadata: { name: "a", namespace: "demo", uid: "1", generation: 1, ...metadata },
});
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };

test("requests of lists and resyncs come after events, except deletions, which are not new events", async () => {
  const { source, asked } = setUp();
  for (const object of [pool(), pool(deleted)]) {
    source.onOwnKind({ kind: "added", initial: true, object, seen: {} });
    await source.resync(object, { reason: "resync interval", seen: {} });
  }
  expect(asked).toEqual([
    { class: "resync", uid: "1" },
    { class: "resync", uid: "1" },
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
    source.onOwnKind({ kind: "changed", initial: false, seen: {}, object, previous });
    return asked.length;
  };
  expect(change(bare, own)).toBe(0);
  expect(change(own, bare)).toBe(1);
  expect(change(bare, foreign)).toBe(1);
  expect(change(own, pool({ ...own.metadata, ...deleted }))).toBe(1);
});

test("requests for a changed child carry the owner's version in the leader's watch", async () => {
  const { source, triggers } = setUp();
  const owner = { apiVersion: "demo.konverge.dev/v1", kind: "Pool", name: "a", uid: "1" };
  const child = pool({ name: "child", ownerReferences: [{ ...owner, controller: true }] });
  const change = { kind: "added", initial: false, object: child, seen: {} } as const;
  source.onOwned(change, ({ name }) => (name === "a" ? "7" : undefined));
  source.onOwned(change, () => undefined);
  expect(triggers.map(({ resourceVersion }) => resourceVersion)).toEqual(["7", undefined]);
});

test("a cluster-scoped owner of an object in a namespace has one key, without the namespace", () => {
  const { source, keys } = setUp(
    defineController({
      name: "pool",
      for: { ...Pool, scope: "Cluster" },
      reconcile: async () => undefined,
    }),
  );
  const owner = { apiVersion: "demo.konverge.dev/v1", kind: "Pool", name: "a", uid: "1" };
  const child = pool({ name: "child", ownerReferences: [{ ...owner, controller: true }] });
  const known: (string | undefined)[] = [];
  const change = { kind: "added", initial: false, object: child, seen: {} } as const;
  source.onOwned(change, ({ namespace }) => {
    known.push(namespace);
    return undefined;
  });
  const watch = { type: Pool, map: () => [{ namespace: "demo", name: "a" }] };
  source.onWatched(watch, change, () => undefined);
  expect(keys.map(({ namespace, name }) => [namespace, name])).toEqual([
    [undefined, "a"],
    [undefined, "a"],
  ]);
  expect(known).toEqual([undefined]);
});

test("the predicate of a watch filters changes, but neither new nor deleted objects", async () => {
  const { source, asked } = setUp();
  const watch = {
    type: Pool,
    predicate: generationChanged,
    map: () => [{ namespace: "demo", name: "a" }],
  };
  const [first, same, next] = [pool(), pool({ labels: { a: "b" } }), pool({ generation: 2 })];
  const count = (change: Pick<SeenChange, "kind" | "object" | "previous">) => {
    asked.length = 0;
    source.onWatched(watch, { ...change, initial: false, seen: {} }, () => undefined);
    return asked.length;
  };
  expect(count({ kind: "added", object: first })).toBe(1);
  expect(count({ kind: "changed", object: same, previous: first })).toBe(0);
  expect(count({ kind: "changed", object: next, previous: same })).toBe(1);
  expect(count({ kind: "deleted", object: next, previous: next })).toBe(1);
});
