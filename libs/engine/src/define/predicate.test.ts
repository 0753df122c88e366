import type { ApiObject, ObjectMeta } from "@konverge/core";
import { expect, test } from "vitest";
import {
  allOf,
  alwaysPasses,
  annotationsChanged,
  anyOf,
  contentChanged,
  generationChanged,
  isRequestedByPerson,
  labelsChanged,
  not,
  REQUESTED_AT,
  resourceVersionChanged,
  statusChanged,
  type ObjectChange,
} from "./predicate.ts";

const object = (metadata: Partial<ObjectMeta>): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", uid: "u", ...metadata },
});
const change = (before: Partial<ObjectMeta>, after: Partial<ObjectMeta>) =>
  ({ kind: "changed", object: object(after), previous: object(before) }) as const;

test("compares the generation, or the content for kinds without one", () => {
  expect(generationChanged(change({ generation: 1 }, { generation: 2 }))).toBe(true);
  expect(
    generationChanged(
      change({ generation: 1, resourceVersion: "1" }, { generation: 1, resourceVersion: "2" }),
    ),
  ).toBe(false);
  expect(generationChanged(change({ labels: {} }, { labels: { a: "1" } }))).toBe(true);
  expect(generationChanged(change({ resourceVersion: "1" }, { resourceVersion: "2" }))).toBe(false);
});

test("a change of only the version and the managed fields is not a change of the content", () => {
  const managedFields = [{ manager: "kubectl" }];
  const same = { resourceVersion: "1", labels: { a: "1" } };
  const rewritten = change(same, { ...same, resourceVersion: "2", managedFields });
  expect(contentChanged(rewritten)).toBe(false);
  expect(contentChanged(change(rewritten.object.metadata, same))).toBe(false);
  expect(resourceVersionChanged(rewritten)).toBe(true);
  const annotated = { ...same, resourceVersion: "2", managedFields, annotations: { a: "1" } };
  expect(contentChanged(change(same, annotated))).toBe(true);
  expect(contentChanged({ kind: "added", object: object(same) })).toBe(true);
});

test("a status write changes the content and the status, and nothing else", () => {
  const previous = { ...object({ resourceVersion: "1", generation: 1 }), status: { ready: 1 } };
  const next = { ...previous, status: { ready: 2 } };
  const status = { kind: "changed", object: next, previous } as const;
  const predicates = [contentChanged, statusChanged, generationChanged, labelsChanged];
  expect(predicates.map((holds) => holds(status))).toEqual([true, true, false, false]);
  expect(statusChanged({ ...status, previous: next })).toBe(false);
});

test("changes that a predicate could lose pass, for each kind of source", () => {
  const same = { generation: 1, resourceVersion: "1" };
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "b", uid: "b", controller: true };
  const asked = change(same, { ...same, annotations: { [REQUESTED_AT]: "now" } });
  const passing = (one: ObjectChange) =>
    (["for", "owns", "watches"] as const).filter((option) => alwaysPasses(one, option));
  const all = ["for", "owns", "watches"];
  expect(passing(change(same, same))).toEqual([]);
  expect(passing({ kind: "added", object: object(same) })).toEqual(all);
  expect(passing({ kind: "deleted", object: object(same), previous: object(same) })).toEqual(all);
  const terminating = { ...same, deletionTimestamp: "2026-01-01T00:00:00Z" };
  expect(passing(change(same, terminating))).toEqual(all);
  expect(passing(change(same, { ...same, finalizers: ["x"] }))).toEqual(["for"]);
  expect(passing(change(same, { ...same, uid: "other" }))).toEqual(["for"]);
  expect(passing(asked)).toEqual(["for"]);
  expect(passing(change(same, { ...same, ownerReferences: [owner] }))).toEqual(["owns"]);
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
