import type { ApiObject, ResourceType } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { IndexedObjects, type ObjectSelection } from "@konverge/kube";
import * as fc from "fast-check";
import { createObjectCache } from "./object-cache.ts";
import type { ObjectStore } from "./object-store.ts";

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

function setUp(objects: ApiObject[], lastVersion: string) {
  const store: ObjectStore & { objects: ApiObject[]; lastVersion: string } = {
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
  const cache = createObjectCache(new Map([["machines.g", store]]), () => clock.ms);
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

test("stops listing an own create that another client deleted", async () => {
  const { store, cache, names } = setUp([], "5");
  cache.noteWrite(type, machine("b", "7"));
  store.lastVersion = "9";
  expect(await names()).toEqual([]);
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
      synced: Promise.resolve(),
      lastVersion: "5",
      list: (selection) => objects.list(selection),
      get: (namespace = "", name) => objects.get({ namespace, name }),
    };
    const cache = createObjectCache(new Map([["machines.g", store]]));
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

test("lists equal the state after the own writes, whatever the watch has delivered", async () => {
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
        new Map<string, ObjectStore>([
          [
            "machines.g",
            {
              synced: Promise.resolve(),
              get lastVersion() {
                return state.lastVersion;
              },
              list: (by) => watched.list(by),
              get: (namespace = "", name) => watched.get({ namespace, name }),
            },
          ],
        ]),
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
