import type { ApiObject, JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import { extractOwned } from "./extract-owned.ts";

const manager = "konverge/web";

function objectWith(fieldsV1: JsonObject, entry: object = {}): ApiObject {
  const object = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: "web",
      namespace: "n",
      labels: { app: "web", team: "a" },
      finalizers: ["a", "b"],
      managedFields: [
        { manager: "kubectl", operation: "Update", apiVersion: "apps/v1", fieldsV1: {} },
        { manager, operation: "Apply", apiVersion: "apps/v1", fieldsV1, ...entry },
      ],
    },
    spec: {
      replicas: 3,
      strategy: { type: "Recreate" },
      template: {
        spec: {
          containers: [
            { name: "app", image: "a", ports: [{ containerPort: 80, protocol: "TCP" }] },
            { name: "sidecar", image: "b" },
          ],
          volumes: [{ name: "v", emptyDir: {} }],
        },
      },
    },
  };
  return object as unknown as ApiObject;
}

const head = { apiVersion: "apps/v1", kind: "Deployment" };
const metadata = { name: "web", namespace: "n" };

test("returns members, list items by key, and set items by value, that the manager owns", () => {
  const containers = {
    'k:{"name":"app"}': {
      ".": {},
      "f:name": {},
      "f:image": {},
      "f:ports": { 'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {} } },
    },
  };
  const object = objectWith({
    "f:metadata": { "f:labels": { "f:app": {} }, "f:finalizers": { 'v:"b"': {} } },
    "f:spec": {
      "f:replicas": {},
      "f:strategy": {},
      "f:template": { "f:spec": { "f:containers": containers } },
    },
  });
  expect(extractOwned(object, { manager })).toEqual({
    ...head,
    metadata: { ...metadata, labels: { app: "web" }, finalizers: ["b"] },
    spec: {
      replicas: 3,
      strategy: { type: "Recreate" },
      template: {
        spec: {
          containers: [{ name: "app", image: "a", ports: [{ containerPort: 80 }] }],
        },
      },
    },
  });
});

test("omits fields that no longer exist, and content of a map owned without it", () => {
  const object = objectWith({ "f:spec": { "f:paused": {}, "f:strategy": { ".": {} } } });
  expect(extractOwned(object, { manager })).toEqual({
    ...head,
    metadata,
    spec: { strategy: {} },
  });
});

test("returns undefined for a manager without an apply, and distinguishes subresources", () => {
  const object = objectWith({ "f:spec": { "f:replicas": {} } }, { subresource: "status" });
  expect(extractOwned(object, { manager })).toBeUndefined();
  expect(extractOwned(object, { manager: "kubectl" })).toBeUndefined();
  expect(extractOwned(object, { manager, subresource: "status" })).toMatchObject({
    spec: { replicas: 3 },
  });
});

test("rejects an object without managedFields, or of another version than the apply", () => {
  const { managedFields: _, ...bare } = objectWith({}).metadata;
  expect(() => extractOwned({ ...objectWith({}), metadata: bare }, { manager })).toThrow(
    "managedFields",
  );
  const old = objectWith({}, { apiVersion: "apps/v1beta1" });
  expect(() => extractOwned(old, { manager })).toThrow("apps/v1beta1");
});
