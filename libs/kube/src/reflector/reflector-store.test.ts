import type { ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import { createReflectorStore, type ObjectEvent, type ReflectorStore } from "./reflector-store.ts";

const make = (name: string, version: string, uid = name): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "n", name, uid, resourceVersion: version },
});
const summarize = (events: readonly ObjectEvent<ApiObject>[]) =>
  events.map(({ kind, object, previous }) => [
    kind,
    `${object.metadata.uid}@${object.metadata.resourceVersion}`,
    previous === undefined
      ? undefined
      : `${previous.metadata.uid}@${previous.metadata.resourceVersion}`,
  ]);
/** Applies the events of a store, as the reflector does. */
const apply = (store: ReflectorStore<ApiObject>, events: readonly ObjectEvent<ApiObject>[]) => {
  for (const event of events) store.commit(event);
  return summarize(events);
};
/** The events of a whole list in one page. */
const eventsOfList = (store: ReflectorStore<ApiObject>, items: readonly ApiObject[]) => {
  const list = store.startList();
  return [...list.eventsOf(items), ...list.deletions()].flat();
};
const seeded = (): ReflectorStore<ApiObject> => {
  const store = createReflectorStore<ApiObject>();
  apply(store, eventsOfList(store, [make("a", "1"), make("b", "1")]));
  return store;
};

test("a watch reports added, changed and deleted with the previous state", () => {
  const store = seeded();
  expect(apply(store, store.eventsOf({ kind: "added", object: make("c", "2") }))).toEqual([
    ["added", "c@2", undefined],
  ]);
  expect(apply(store, store.eventsOf({ kind: "changed", object: make("a", "3") }))).toEqual([
    ["changed", "a@3", "a@1"],
  ]);
  expect(apply(store, store.eventsOf({ kind: "deleted", object: make("a", "4") }))).toEqual([
    ["deleted", "a@4", "a@3"],
  ]);
  expect(store.list().map(({ metadata }) => metadata.name)).toEqual(["b", "c"]);
});
test("a known state is not reported again", () => {
  const store = seeded();
  expect(store.eventsOf({ kind: "added", object: make("a", "1") })).toEqual([]);
  expect(store.eventsOf({ kind: "deleted", object: make("x", "9") })).toEqual([]);
});
test("another uid under the name is a deletion and an addition, in a watch and in a list", () => {
  const expected = [
    ["deleted", "a@1", "a@1"],
    ["added", "a2@5", undefined],
  ];
  expect(summarize(seeded().eventsOf({ kind: "changed", object: make("a", "5", "a2") }))).toEqual(
    expected,
  );
  expect(summarize(eventsOfList(seeded(), [make("a", "5", "a2"), make("b", "1")]))).toEqual(
    expected,
  );
});
test("the deletion of an older object of the same name does not delete its successor", () => {
  const store = seeded();
  apply(store, store.eventsOf({ kind: "added", object: make("a", "5", "a2") }));
  expect(store.eventsOf({ kind: "deleted", object: make("a", "4", "a") })).toEqual([]);
});
test("a list reports additions, changes, and deletions with the last known state", () => {
  const store = seeded();
  expect(apply(store, eventsOfList(store, [make("b", "7"), make("c", "8")]))).toEqual([
    ["changed", "b@7", "b@1"],
    ["added", "c@8", undefined],
    ["deleted", "a@1", "a@1"],
  ]);
  expect(eventsOfList(store, [make("b", "7"), make("c", "8")])).toEqual([]);
});
test("compares a list page by page, and deletes only what no page has", () => {
  const store = seeded();
  const list = store.startList();
  expect(apply(store, list.eventsOf([make("c", "8")]).flat())).toEqual([
    ["added", "c@8", undefined],
  ]);
  expect(apply(store, list.eventsOf([make("b", "7")]).flat())).toEqual([["changed", "b@7", "b@1"]]);
  expect(apply(store, list.deletions().flat())).toEqual([["deleted", "a@1", "a@1"]]);
});
test("freezes stored objects in depth", () => {
  const store = createReflectorStore<any>();
  apply(
    store,
    store.eventsOf({ kind: "added", object: { ...make("a", "1"), spec: { list: [{ x: 1 }] } } }),
  );
  const found = store.get({ namespace: "n", name: "a" });
  expect(() => (found.spec.list[0].x = 2)).toThrow(TypeError);
});

test("measures the objects and their JSON", () => {
  const store = createReflectorStore<ApiObject>();
  expect(store.measure()).toEqual({ objects: 0, bytes: 0 });
  const objects = Array.from({ length: 300 }, (_, n) => make(`a-${1_000 + n}`, "1"));
  apply(store, eventsOfList(store, objects));
  const bytes = objects.map((one) => JSON.stringify(one).length).reduce((a, b) => a + b);
  expect(store.measure()).toEqual({ objects: 300, bytes });
});
