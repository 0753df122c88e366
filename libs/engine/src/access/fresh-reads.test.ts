import type { ApiObject, JsonObject } from "@konverge/core";
import { atLeast, onlyMetadata, partOf, startFrom } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { createFreshReads, preferNewer } from "./fresh-reads.ts";

const object = (resourceVersion: string): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", resourceVersion },
});

test("returns a read object once, by identity and within 100 ms", () => {
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

test("starts from the newer of the passed object and the read one", () => {
  const [older, newer] = [object("5"), object("10")] as unknown as [JsonObject, JsonObject];
  expect(preferNewer(startFrom(older), newer)).toEqual(startFrom(newer));
  expect(preferNewer(startFrom(newer), older)).toEqual(startFrom(newer));
  expect(preferNewer(atLeast("3"), newer)).toEqual(startFrom(newer, atLeast("3")));
  expect(preferNewer(startFrom(newer), undefined)).toEqual(startFrom(newer));
  const strange = object("x") as unknown as JsonObject;
  expect(preferNewer(startFrom(strange), newer)).toEqual(startFrom(strange));
});

test("returns an object of a list for a write that accepts any age", () => {
  const reads = createFreshReads(() => 0);
  const listed = reads.noteListed(object("5"));
  expect(reads.take(listed, Infinity)).toBe(listed);
  expect(reads.take(reads.noteListed(object("5")))).toBeUndefined();
});

test("never returns a part of an object", () => {
  const reads = createFreshReads(() => 0);
  const part = () => partOf(onlyMetadata(ConfigMap), object("5"));
  expect(reads.take(reads.note(part()), Infinity)).toBeUndefined();
  expect(reads.take(reads.noteListed(part()), Infinity)).toBeUndefined();
});
