import type { ApiObject, ResourceType } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { IndexedObjects, partOf, type ObjectSelection } from "@konverge/kube";
import * as fc from "fast-check";
import { createObjectCache } from "./object-cache.ts";
import type { ObjectStore, ObjectStores } from "./object-store.ts";

const type: ResourceType = {
  group: "g",
  version: "v1",
  kind: "Machine",
  resource: "machines",
  scope: "Namespaced",
};
const machine = (name: string, resourceVersion: string, finalizers: string[] = []): ApiObject => ({
  apiVersion: "g/v1",
  kind: "Machine",
  metadata: { name, namespace: "n", uid: `uid-${name}`, resourceVersion, finalizers },
});

const scope = { type, namespace: undefined, labels: undefined, fields: undefined };

/** The stores of one kind, all started. */
function storesOf(...stores: readonly ObjectStore[]): ObjectStores {
  const of = (kind: ResourceType, namespace: string | undefined) =>
    stores.filter(
      (store) =>
        kind.resource === store.scope.type.resource &&
        (store.scope.namespace === undefined || store.scope.namespace === namespace),
    );
  return {
    find: (kind, namespace, accepts) => of(kind, namespace).find((store) => accepts(store.scope)),
    started: of,
  };
}

function setUp(objects: ApiObject[], lastVersion: string) {
  const store: ObjectStore & { objects: ApiObject[]; lastVersion: string } = {
    scope,
    objects,
    lastVersion,
    synced: Promise.resolve(),
    list(selection) {
      const indexed = new IndexedObjects();
      for (const object of this.objects) indexed.set(object);
      return indexed.list(selection);
    },
    get(_namespace, name) {
      return this.objects.find(({ metadata }) => metadata.name === name);
    },
  };
  const clock = { ms: 0 };
  const cache = createObjectCache(storesOf(store), () => clock.ms);
  const names = async () =>
    (await cache.list(type, { namespace: "n", atLeast: undefined }))
      ?.map(({ metadata }) => metadata.name)
      .toSorted();
  return { store, cache, names, clock };
}

test("lists an own create before the watch reports it, and once after that", async () => {
  const { store, cache, names } = setUp([machine("a", "5")], "5");
  cache.noteWrite(type, machine("b", "7"));
  expect(await names()).toEqual(["a", "b"]);
  store.objects = [machine("a", "5"), machine("b", "7")];
  store.lastVersion = "7";
  expect(await names()).toEqual(["a", "b"]);
});

test("forgets own writes when the version goes back, as after a restore of etcd", async () => {
  const { store, cache, names } = setUp([machine("a", "5"), machine("c", "6")], "6");
  cache.noteWrite(type, machine("b", "7"));
  cache.noteDelete(type, machine("c", "8"));
  expect(await names()).toEqual(["a", "b"]);
  store.objects = [machine("c", "3")];
  store.lastVersion = "4";
  expect(await names()).toEqual(["c"]);
});

test("stops listing an own create that another client deleted", async () => {
  const { store, cache, names } = setUp([], "5");
  cache.noteWrite(type, machine("b", "7"));
  store.lastVersion = "9";
  expect(await names()).toEqual([]);
});

test("does not answer while an own write in another version of the kind is missing in the watch", async () => {
  const { store, cache, names } = setUp([machine("a", "5")], "5");
  cache.noteWrite({ ...type, version: "v2" }, { ...machine("a", "7"), apiVersion: "g/v2" });
  expect(await names()).toBeUndefined();
  store.objects = [machine("a", "7")];
  store.lastVersion = "7";
  expect(await names()).toEqual(["a"]);
});

test("hides an own delete immediately, unless the object has finalizers", async () => {
  const { cache, names } = setUp([machine("a", "5"), machine("b", "5", ["hold"])], "5");
  cache.noteDelete(type, machine("a", "5"));
  cache.noteDelete(type, machine("b", "5", ["hold"]));
  expect(await names()).toEqual(["b"]);
});

test("does not answer for a type without a watch", async () => {
  const { cache } = setUp([], "5");
  expect(
    await cache.list({ ...type, resource: "others" }, { namespace: "n", atLeast: undefined }),
  ).toBeUndefined();
});

describe("find", () => {
  const a = { namespace: "n", name: "a" };

  test("returns objects of the watch at the requested version or later", async () => {
    const { cache, store } = setUp([machine("a", "9")], "9");
    expect(await cache.find(type, a, "9")).toBe(store.objects[0]);
    expect(await cache.find(type, a, "10")).toBeUndefined();
    expect(await cache.find(type, { ...a, name: "b" }, "1")).toBeUndefined();
    expect(await cache.find({ ...type, version: "v2" }, a, "9")).toBeUndefined();
    expect(await cache.find(type, a, "not a number")).toBeUndefined();
  });

  test("returns no object of a watch with other selectors, which may be outside of the scope", async () => {
    const { cache, store } = setUp([machine("a", "9")], "9");
    const within = { labels: "app=web", fields: undefined };
    expect(await cache.find(type, a, "9", within)).toBeUndefined();
    Object.assign(store, { scope: { ...scope, ...within } });
    expect(await cache.find(type, a, "9", within)).toBe(store.objects[0]);
    expect(await cache.find(type, a, "9")).toBeUndefined();
  });

  test("never returns an object older than an own write", async () => {
    const { cache, store } = setUp([machine("a", "9")], "9");
    cache.noteWrite(type, machine("a", "11"));
    expect(await cache.find(type, a, "9")).toBeUndefined();
    store.objects = [machine("a", "11")];
    store.lastVersion = "11";
    expect(await cache.find(type, a, "9")).toBe(store.objects[0]);
  });

  test("waits for a watch that is a few milliseconds behind", async () => {
    const { cache, store } = setUp([machine("a", "9")], "9");
    const found = cache.find(type, a, "10");
    store.objects = [machine("a", "10")];
    expect(await found).toBe(store.objects[0]);
  });

  test("reads a contested object from the API server for five seconds", async () => {
    const { cache, clock } = setUp([machine("a", "9")], "9");
    cache.noteConflict({ ...type, ...a });
    clock.ms = 4_999;
    expect(await cache.find(type, a, "9")).toBeUndefined();
    clock.ms = 5_000;
    expect(await cache.find(type, a, "9")).toBeDefined();
  });
});

test("a list waits for a watch that is behind the requested version", async () => {
  const { store, cache } = setUp([machine("a", "5")], "5");
  const listing = cache.list(type, { namespace: "n", atLeast: "7" });
  store.objects = [];
  store.lastVersion = "7";
  expect(await listing).toEqual([]);
});

test("does not answer if the watch does not reach the version within a second", async () => {
  const { store, cache, clock } = setUp([machine("a", "5")], "5");
  // The second has passed by the next look.
  Object.defineProperty(store, "lastVersion", {
    get() {
      clock.ms += 600;
      return "5";
    },
  });
  expect(await cache.list(type, { namespace: "n", atLeast: "7" })).toBeUndefined();
});

test("drops own writes that the watch has delivered, even if the kind is never read", async () => {
  const { store, cache, names } = setUp([], "1");
  for (let n = 1; n <= 999; n += 1) cache.noteWrite(type, machine(`m-${n}`, `${n}`));
  store.lastVersion = "999";
  cache.noteWrite(type, machine("late", "1000"));
  // What is still laid over the store: the one that the watch has not delivered.
  store.lastVersion = "0";
  expect(await names()).toEqual(["late"]);
});

const child = (
  name: string,
  { version = 5, owner = "owner", namespace = "n" } = {},
): ApiObject => ({
  ...machine(name, `${version}`),
  metadata: {
    ...machine(name, `${version}`).metadata,
    namespace,
    ownerReferences: [{ apiVersion: "g/v1", kind: "Pool", name: owner, uid: owner }],
  },
});

test("a list of 10 children with own writes touches as many objects among 100 as among 10,000", async () => {
  const touchedOf = async (size: number) => {
    const counts = { touched: 0 };
    const counted = (object: ApiObject): ApiObject => {
      const { metadata } = object;
      const get = () => ((counts.touched += 1), metadata);
      return Object.defineProperty({ ...object }, "metadata", { get });
    };
    const objects = new IndexedObjects<ApiObject>();
    for (let n = 0; n < size; n += 1) {
      objects.set(counted(child(`c-${n}`, { owner: n < 10 ? "owner" : `other-${n}` })));
    }
    const store: ObjectStore = {
      scope,
      synced: Promise.resolve(),
      lastVersion: "5",
      list: (selection) => objects.list(selection),
      get: (namespace = "", name) => objects.get({ namespace, name }),
    };
    const cache = createObjectCache(storesOf(store));
    // Own writes to other owners' children, and some that this list must have.
    for (let n = 0; n < 500; n += 1) {
      const owner = n < 3 ? "owner" : `other-${n + 50}`;
      cache.noteWrite(type, counted(child(`c-${n + 50}`, { owner, version: 9 })));
    }
    counts.touched = 0;
    const found = await cache.list(type, { namespace: "n", ownerUid: "owner", atLeast: undefined });
    expect(found).toHaveLength(13);
    return counts.touched;
  };
  const few = await touchedOf(100);
  expect(await touchedOf(10_000)).toBe(few);
  expect(few).toBeLessThan(100);
});

test("a list equals the state after the worker's own writes, whatever the watch has delivered", async () => {
  const letter = fc.constantFrom("a", "b", "c");
  const steps = fc.array(
    fc.record({
      name: letter,
      namespace: fc.constantFrom("n", "m"),
      owner: letter,
      gone: fc.boolean(),
    }),
  );
  const delivered = fc.nat(10);
  const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const selection = fc.record({
    namespace: fc.constantFrom(undefined, "n", "m"),
    ownerUid: fc.option(letter, { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(steps, delivered, selection, async (made, behind, wanted: ObjectSelection) => {
      const server = new IndexedObjects<ApiObject>();
      const watched = new IndexedObjects<ApiObject>();
      const state = { lastVersion: "0" };
      const cache = createObjectCache(
        storesOf({
          scope,
          synced: Promise.resolve(),
          get lastVersion() {
            return state.lastVersion;
          },
          list: (by) => watched.list(by),
          get: (namespace = "", name) => watched.get({ namespace, name }),
        }),
      );
      const deliveries: (() => void)[] = [];
      made.forEach(({ gone, name, namespace, owner }, index) => {
        const version = index + 1;
        const known = server.get({ namespace, name });
        if (gone && known === undefined) return;
        const uid = known?.metadata.uid ?? `uid-${version}`;
        const base = child(name, { version, owner, namespace });
        const object = { ...base, metadata: { ...base.metadata, uid } };
        if (gone) server.delete(object.metadata);
        else server.set(object);
        if (gone && known !== undefined) cache.noteDelete(type, known);
        else cache.noteWrite(type, object);
        deliveries.push(() => {
          if (gone) watched.delete(object.metadata);
          else watched.set(object);
          state.lastVersion = `${version}`;
        });
      });
      for (const deliver of deliveries.slice(0, Math.max(0, deliveries.length - behind))) deliver();
      const found = await cache.list(type, { ...wanted, atLeast: undefined });
      expect(new Set(found)).toEqual(new Set(server.list(wanted)));
    }),
    { seed },
  );
});

test("a list equals an unscoped read of the server, whatever the scopes of the watches", async () => {
  const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const letter = fc.constantFrom("a", "b");
  const maybe = fc.option(letter, { nil: undefined });
  const keep = fc.constantFrom(undefined, "metadata" as const);
  const rarely = fc.oneof(
    { weight: 4, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: letter },
  );
  const scopes = fc.array(fc.record({ namespace: maybe, label: maybe, field: rarely, keep }), {
    minLength: 4,
    maxLength: 6,
  });
  const writes = fc.array(
    fc.record({
      namespace: letter,
      name: letter,
      owner: letter,
      label: maybe,
      own: fc.boolean(),
      gone: fc.boolean(),
    }),
    { maxLength: 12 },
  );
  const reads = fc.record({ namespace: maybe, ownerUid: maybe, label: maybe, keep });
  const selectorOf = (label: string | undefined) =>
    label === undefined ? undefined : `l=${label}`;
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(scopes, writes, reads, fc.nat(12), async (drawn, made, read, delivered) => {
      const server = new IndexedObjects<ApiObject>();
      const stores = drawn.map(({ namespace, label, field, keep: kept }) => {
        const objects = new IndexedObjects<ApiObject>();
        const state = { version: "0" };
        const part = kept === undefined ? type : { ...type, keep: kept };
        const labels = selectorOf(label);
        const fields = field === undefined ? undefined : `metadata.name=${field}`;
        const store: ObjectStore = {
          scope: { type: part, namespace, labels, fields },
          synced: Promise.resolve(),
          get lastVersion() {
            return state.version;
          },
          list: (by) => objects.list(by),
          get: (inside = "", name) => objects.get({ namespace: inside, name }),
        };
        const isSelected = ({ metadata }: ApiObject) =>
          (namespace === undefined || metadata.namespace === namespace) &&
          (label === undefined || metadata.labels?.["l"] === label) &&
          (field === undefined || metadata.name === field);
        const deliver = (object: ApiObject, gone: boolean, version: number) => {
          if (gone || !isSelected(object)) objects.delete(object.metadata);
          else objects.set(partOf(part, object));
          state.version = `${version}`;
        };
        return { store, deliver };
      });
      const cache = createObjectCache(storesOf(...stores.map(({ store }) => store)));
      const last = made.length - 1;
      made.forEach(({ namespace, name, owner, label, own, gone }, index) => {
        const version = index + 1;
        const known = server.get({ namespace, name });
        if (gone && known === undefined) return;
        const base = child(name, { version, owner, namespace });
        const uid = known?.metadata.uid ?? `uid-${version}`;
        const labels = label === undefined ? {} : { l: label };
        const object = { ...base, spec: { version }, metadata: { ...base.metadata, uid, labels } };
        if (gone) server.delete(object.metadata);
        else server.set(object);
        // Changes of others are visible when the watch has delivered them; own ones always.
        const isOwn = own || index > delivered;
        if (isOwn && gone && known !== undefined) cache.noteDelete(type, known);
        else if (isOwn) cache.noteWrite(type, object);
        if (index <= delivered || index > last) {
          for (const { deliver } of stores) deliver(object, gone, version);
        }
      });
      const { keep: kept, label, ...selection } = read;
      const wanted = kept === undefined ? type : { ...type, keep: kept };
      const labelSelector = selectorOf(label);
      const found = await cache.list(wanted, { ...selection, labelSelector, atLeast: undefined });
      // The handler then reads from the API server.
      if (found === undefined) return;
      answered += 1;
      const expected = server
        .list(selection)
        .filter(({ metadata }) => label === undefined || metadata.labels?.["l"] === label)
        .map((object) => partOf(wanted, object));
      expect(new Set(found)).toEqual(new Set(expected));
    }),
    { seed, numRuns: 500 },
  );
  expect(answered).toBeGreaterThan(100);
});
