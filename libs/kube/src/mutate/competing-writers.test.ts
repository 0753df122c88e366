import { defined, type JsonObject } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { findCompetingWriters } from "./competing-writers.ts";

const AT = "2026-01-01T00:00:00Z";
const LATER = "2026-01-01T00:00:01Z";

interface Entry {
  readonly manager: string;
  readonly fields: JsonObject;
  readonly time?: string;
  readonly subresource?: string;
}
const object = (content: JsonObject, entries: readonly Entry[]): JsonObject => ({
  apiVersion: "v1",
  kind: "Pool",
  ...content,
  metadata: {
    ...(content["metadata"] as JsonObject | undefined),
    managedFields: entries.map(({ manager, fields, time = AT, subresource }) => ({
      manager,
      operation: "Update",
      apiVersion: "v1",
      time,
      fieldsType: "FieldsV1",
      fieldsV1: fields,
      ...defined({ subresource }),
    })),
  },
});
const winnersOf = (before: JsonObject, found: JsonObject, sensitive = false) =>
  findCompetingWriters(before, found, { sensitive }).map(({ manager, paths }) => [manager, paths]);

const replicas = { "f:spec": { "f:replicas": {} } };

test("names the manager that owns the changed field", () => {
  const idle = { manager: "idle", fields: { "f:data": { "f:x": {} } } };
  const before = object({ spec: { replicas: 1 } }, [idle, { manager: "hpa", fields: replicas }]);
  const found = object({ spec: { replicas: 2 } }, [
    idle,
    { manager: "hpa", fields: replicas, time: LATER },
  ]);
  expect(winnersOf(before, found)).toEqual([["hpa", ["spec.replicas"]]]);
});

test("also if the write happened within the same second and its entry looks the same", () => {
  const entries = [{ manager: "hpa", fields: replicas }];
  expect(
    winnersOf(
      object({ spec: { replicas: 1 } }, entries),
      object({ spec: { replicas: 2 } }, entries),
    ),
  ).toEqual([["hpa", ["spec.replicas"]]]);
});

test("names a new manager with its subresource and omits idle ones", () => {
  const mine = { manager: "me", fields: replicas };
  const status = { manager: "op", subresource: "status", fields: { "f:status": { "f:n": {} } } };
  const before = object({ spec: { replicas: 1 } }, [mine]);
  const found = object({ spec: { replicas: 1 }, status: { n: 1 } }, [mine, status]);
  expect(findCompetingWriters(before, found, { sensitive: false })).toEqual([
    { manager: "op", operation: "Update", subresource: "status", paths: ["status.n"] },
  ]);
});

test.each([
  ["a bare map", { "f:spec": {} }],
  ["a map and its existence", { "f:spec": { ".": {} } }],
  ["nothing", {}],
])("omits a manager that lost a field and keeps %s", (_title, fields) => {
  const before = object({ spec: { replicas: 1 } }, [{ manager: "victim", fields: replicas }]);
  const found = object({ spec: { replicas: 2 } }, [
    { manager: "victim", fields },
    { manager: "winner", fields: replicas },
  ]);
  expect(winnersOf(before, found)).toEqual([["winner", ["spec.replicas"]]]);
});

describe("for a removed field, which has no owner any more,", () => {
  const both = { "f:spec": { "f:a": {}, "f:b": {} } };
  const one = { "f:spec": { "f:a": {} } };
  test.each([
    ["the manager that wrote later", LATER],
    ["the last owner, without other evidence", AT],
  ])("%s", (_title, time) => {
    const before = object({ spec: { a: 1, b: 1 } }, [{ manager: "x", fields: both }]);
    const found = object({ spec: { a: 1 } }, [{ manager: "x", fields: one, time }]);
    expect(winnersOf(before, found)).toEqual([["x", ["spec.b"]]]);
  });
});

test("names list elements by key, and for sensitive kinds only as elements", () => {
  const fields = { "f:metadata": { "f:finalizers": { ".": {}, 'v:"a/b"': {} } } };
  const before = object({}, []);
  const found = object({ metadata: { finalizers: ["a/b"] } }, [{ manager: "x", fields }]);
  expect(winnersOf(before, found)).toEqual([["x", ['metadata.finalizers["a/b"]']]]);
  expect(winnersOf(before, found, true)).toEqual([["x", ["metadata.finalizers[…]"]]]);
});

test("names no writer without managedFields", () => {
  expect(winnersOf({ metadata: {}, spec: { a: 1 } }, { metadata: {}, spec: { a: 2 } })).toEqual([]);
});
