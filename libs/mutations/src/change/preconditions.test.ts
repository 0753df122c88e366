import type { JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import type { Preconditions } from "./change.ts";
import { findFailedPrecondition } from "./preconditions.ts";

const object: JsonObject = {
  metadata: { generation: 4, labels: { tier: "gold" } },
  spec: { replicas: 3, ports: [80], secret: "hunter2" },
};

test.each<[Preconditions]>([
  [{}],
  [{ exists: true, generation: 4 }],
  [{ fields: [{ path: "/spec/replicas", value: 3 }] }],
  [{ fields: [{ path: "/spec/ports", value: [80] }] }],
  [{ fields: [{ path: "/spec/none", value: null }] }],
  [{ fields: [{ path: "/spec/ports/0", exists: true }] }],
  [{ fields: [{ path: "/spec/constructor", exists: false }] }],
])("%j is met", (preconditions) => {
  expect(findFailedPrecondition(object, preconditions)).toBeUndefined();
});

test.each<[Preconditions, string]>([
  [{ exists: false }, "the object exists"],
  [{ generation: 3 }, "the generation is 4, not 3"],
  [{ fields: [{ path: "/spec/replicas", value: 4 }] }, "/spec/replicas has another value"],
  [{ fields: [{ path: "/spec/secret", value: "x" }] }, "/spec/secret has another value"],
  [{ fields: [{ path: "/spec/none", value: 1 }] }, "/spec/none does not exist"],
  [{ fields: [{ path: "/spec/none", exists: true }] }, "/spec/none does not exist"],
  [{ fields: [{ path: "/metadata/labels/tier", exists: false }] }, "/metadata/labels/tier exists"],
])("%j fails: %s", (preconditions, text) => {
  expect(findFailedPrecondition(object, preconditions)).toBe(text);
});

test("a missing object meets only exists: false and fields that must not exist", () => {
  expect(findFailedPrecondition(undefined, { exists: false })).toBeUndefined();
  expect(findFailedPrecondition(undefined, { exists: true })).toBe("the object does not exist");
  expect(findFailedPrecondition(undefined, { generation: 1 })).toContain("is missing");
});
