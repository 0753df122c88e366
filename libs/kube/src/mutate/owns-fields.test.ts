import type { ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import { ownsFields } from "./owns-fields.ts";

const port = (fields: object) => ({ [`k:{"containerPort":80,"protocol":"TCP"}`]: fields });
const owned = {
  "f:metadata": { "f:labels": { "f:app": {} }, "f:finalizers": { ".": {}, 'v:"a/b"': {} } },
  "f:spec": {
    "f:replicas": {},
    "f:args": {},
    "f:ports": port({ ".": {}, "f:containerPort": {}, "f:name": {} }),
  },
};
const object = (fieldsV1: object, operation: "Apply" | "Update" = "Apply"): ApiObject => ({
  apiVersion: "v1",
  kind: "A",
  metadata: {
    name: "a",
    managedFields: [{ manager: "me", operation, apiVersion: "v1", fieldsV1: fieldsV1 as never }],
  },
});
const intent = {
  apiVersion: "v1",
  kind: "A",
  metadata: { name: "a", namespace: "n", labels: { app: "x" }, finalizers: ["a/b"] },
  spec: { replicas: 1, args: ["a", "b"], ports: [{ containerPort: 80, name: "http" }] },
};

test("is true for the fields that were applied, in lists by key, by value and as a whole", () => {
  expect(ownsFields(object(owned), intent, "me")).toBe(true);
});

test.each<[string, ApiObject, string]>([
  ["another manager", object(owned), "other"],
  ["an update instead of an apply", object(owned, "Update"), "me"],
  [
    "a lost field",
    object({ ...owned, "f:spec": { ...owned["f:spec"], "f:replicas": undefined } }),
    "me",
  ],
  [
    "a lost label",
    object({ ...owned, "f:metadata": { "f:labels": { ".": {} }, "f:finalizers": {} } }),
    "me",
  ],
  [
    "a lost item",
    object({ ...owned, "f:spec": { ...owned["f:spec"], "f:ports": { ".": {} } } }),
    "me",
  ],
  [
    "a lost field of an item",
    object({
      ...owned,
      "f:spec": { ...owned["f:spec"], "f:ports": port({ "f:containerPort": {} }) },
    }),
    "me",
  ],
])("is false for %s", (_what, live, manager) => {
  expect(ownsFields(live, intent, manager)).toBe(false);
});
