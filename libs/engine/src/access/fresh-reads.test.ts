import type { ApiObject, JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import { createFreshReads, newerOf } from "./fresh-reads.ts";

const object = (resourceVersion: string): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", resourceVersion },
});

test("a read is good for one write, by the object itself and for 100 ms", () => {
  let nowMs = 0;
  const reads = createFreshReads(() => nowMs);
  const read = reads.note(object("5"));
  expect(reads.take(object("5"))).toBeUndefined();
  nowMs = 100;
  expect(reads.take(read)).toBe(read);
  expect(reads.take(read)).toBeUndefined();
  const old = reads.note(object("6"));
  nowMs = 201;
  expect(reads.take(old)).toBeUndefined();
});

test("of what was carried and what was read the later one counts", () => {
  const [older, newer] = [object("5"), object("10")] as unknown as [JsonObject, JsonObject];
  expect(newerOf(older, newer)).toBe(newer);
  expect(newerOf(newer, older)).toBe(newer);
  expect(newerOf(undefined, newer)).toBe(newer);
  expect(newerOf(newer, undefined)).toBe(newer);
  const strange = object("x") as unknown as JsonObject;
  expect(newerOf(strange, newer)).toBe(strange);
});
