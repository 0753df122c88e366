import type { ApiObject, ResourceType } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { createObjectCache, type ObjectStore } from "./object-cache.ts";

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
    list() {
      return this.objects;
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
