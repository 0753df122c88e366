import type { ApiObject, JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import { createReflectorStore } from "./reflector-store.ts";

const make = (name: string, fieldsV1: JsonObject, version = "1"): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    namespace: "n",
    name,
    uid: name,
    resourceVersion: version,
    managedFields: [{ manager: "a", operation: "Update", fieldsV1: structuredClone(fieldsV1) }],
  },
});
const dataOf = (field: string): JsonObject => ({ "f:data": { [`f:${field}`]: {} } });

function setUp() {
  const store = createReflectorStore<ApiObject>();
  return (object: ApiObject) => {
    for (const event of store.eventsOf({ kind: "added", object })) store.commit(event);
    const { name } = object.metadata;
    return store.get({ namespace: "n", name })?.metadata.managedFields?.[0]?.fieldsV1;
  };
}

test("equal sets of managed fields are stored once, others as they are", () => {
  const setOf = setUp();
  const first = setOf(make("first", dataOf("a")));
  expect(setOf(make("second", dataOf("a")))).toBe(first);
  expect(setOf(make("third", dataOf("b")))).toEqual(dataOf("b"));
  expect(setOf(make("third", dataOf("a"), "2"))).toBe(first);
  expect(first).toEqual(dataOf("a"));
  expect(Object.isFrozen(first)).toBe(true);
});

test("sets of single objects do not replace a set that is used again and again", () => {
  const setOf = setUp();
  const first = setOf(make("first", dataOf("common")));
  for (let n = 0; n < 2_000; n += 1) {
    expect(setOf(make(`own-${n}`, dataOf(`${n}`)))).toEqual(dataOf(`${n}`));
    if (n % 100 === 0) expect(setOf(make(`common-${n}`, dataOf("common")))).toBe(first);
  }
});

test("a set that no object had for long is forgotten", () => {
  const setOf = setUp();
  const first = setOf(make("first", dataOf("a")));
  for (let n = 0; n < 500; n += 1) setOf(make(`own-${n}`, dataOf(`${n}`)));
  const again = setOf(make("again", dataOf("a")));
  expect(again).not.toBe(first);
  expect(again).toEqual(first);
});

test("objects with frozen entries are stored as they are", () => {
  const setOf = setUp();
  setOf(make("first", dataOf("a")));
  const frozen = make("frozen", dataOf("a"));
  for (const entry of frozen.metadata.managedFields ?? []) Object.freeze(entry);
  expect(setOf(frozen)).toEqual(dataOf("a"));
});
