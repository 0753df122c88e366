import type { ApiObject, ObjectMeta } from "@konverge/core";
import { expect, test } from "vitest";
import {
  allOf,
  alwaysPasses,
  annotationsChanged,
  anyOf,
  generationChanged,
  isRequestedByPerson,
  labelsChanged,
  not,
  REQUESTED_AT,
  resourceVersionChanged,
} from "./predicate.ts";

const object = (metadata: Partial<ObjectMeta>): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", uid: "u", ...metadata },
});
const change = (before: Partial<ObjectMeta>, after: Partial<ObjectMeta>) =>
  ({ kind: "changed", object: object(after), previous: object(before) }) as const;

test("compares the generation, or the resourceVersion for kinds without one", () => {
  expect(generationChanged(change({ generation: 1 }, { generation: 2 }))).toBe(true);
  expect(
    generationChanged(
      change({ generation: 1, resourceVersion: "1" }, { generation: 1, resourceVersion: "2" }),
    ),
  ).toBe(false);
  expect(generationChanged(change({ resourceVersion: "1" }, { resourceVersion: "2" }))).toBe(true);
  expect(generationChanged(change({ resourceVersion: "2" }, { resourceVersion: "2" }))).toBe(false);
});

test("deletion, finalizers, another uid and a user request pass every predicate", () => {
  const same = { generation: 1, resourceVersion: "1" };
  expect(alwaysPasses(change(same, same))).toBe(false);
  expect(alwaysPasses(change(same, { ...same, deletionTimestamp: "2026-01-01T00:00:00Z" }))).toBe(
    true,
  );
  expect(alwaysPasses(change(same, { ...same, finalizers: ["x"] }))).toBe(true);
  expect(alwaysPasses(change(same, { ...same, uid: "other" }))).toBe(true);
  expect(alwaysPasses({ kind: "deleted", object: object(same), previous: object(same) })).toBe(
    true,
  );
  const asked = change(same, { ...same, annotations: { [REQUESTED_AT]: "now" } });
  expect(alwaysPasses(asked)).toBe(true);
  expect(isRequestedByPerson(asked)).toBe(true);
  expect(isRequestedByPerson(change(asked.object.metadata, asked.object.metadata))).toBe(false);
});

test("compares labels and annotations by content, and combines predicates", () => {
  const labelled = change({ labels: { a: "1" } }, { labels: { a: "2" } });
  expect(labelsChanged(labelled)).toBe(true);
  expect(annotationsChanged(labelled)).toBe(false);
  expect(anyOf(labelsChanged, annotationsChanged)(labelled)).toBe(true);
  expect(allOf(labelsChanged, annotationsChanged)(labelled)).toBe(false);
  expect(not(resourceVersionChanged)(labelled)).toBe(true);
});
