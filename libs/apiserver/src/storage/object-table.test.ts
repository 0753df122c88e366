import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ObjectStore } from "./object-store.ts";

const object = (name: string) => ({ metadata: { name } });

test("restores the state at any version in the history", () => {
  const step = fc.record({ key: fc.constantFrom("a", "b", "c", "d"), isRemoval: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const store = new ObjectStore();
      const table = store.table("things");
      const states = new Map([[store.version, [] as string[]]]);
      const show = () => table.list().map(({ key, version }) => `${key}@${version}`);
      for (const { key, isRemoval } of steps) {
        if (!isRemoval) store.put(table, key, object(key));
        else if (table.get(key) !== undefined) store.remove(table, key, object(key));
        states.set(store.version, show());
      }
      for (const [version, state] of states) {
        const found = table.listAt(version)?.map((stored) => `${stored.key}@${stored.version}`);
        expect(found).toEqual(state);
      }
    }),
  );
});
test("the history is bounded and reports dropped versions", () => {
  const store = new ObjectStore({ historyLimit: 5 });
  const table = store.table("things");
  for (let round = 0; round < 100; round++) store.put(table, "a", object("a"));
  expect(table.history.since(store.version - 5)).toHaveLength(5);
  expect(table.history.since(50)).toBeUndefined();
  store.compact();
  expect(table.history.since(store.version - 1)).toBeUndefined();
  expect(table.history.since(store.version)).toEqual([]);
});
test("a namespace is a prefix of keys, even beside one with a similar name", () => {
  const store = new ObjectStore();
  const table = store.table("things");
  for (const key of ["a-b/x", "a/x", "a/y", "b/x"]) store.put(table, key, object("x"));
  expect(table.list("a/").map(({ key }) => key)).toEqual(["a/x", "a/y"]);
});
test("one counter for all tables", () => {
  const store = new ObjectStore();
  const first = store.put(store.table("things"), "a", object("a"));
  const second = store.put(store.table("others"), "a", object("a"));
  expect(second.version).toBe(first.version + 1);
  expect(second.object["metadata"]).toEqual({ name: "a", resourceVersion: String(second.version) });
});
