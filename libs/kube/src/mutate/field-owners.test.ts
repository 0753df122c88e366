import type { ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import { listFieldOwners } from "./field-owners.ts";

const POOL: ApiObject = {
  apiVersion: "v1",
  kind: "Service",
  metadata: {
    name: "a",
    managedFields: [
      {
        manager: "kubectl",
        operation: "Apply",
        time: "2026-01-01T00:00:00Z",
        fieldsV1: { "f:spec": { "f:ports": { 'k:{"name":"web"}': { ".": {}, "f:port": {} } } } },
      },
      {
        manager: "konverge/web",
        operation: "Update",
        subresource: "status",
        fieldsV1: { "f:status": { "f:ready": {} } },
      },
      {
        manager: "old",
        operation: "Update",
        subresource: "",
        fieldsV1: { "f:spec": { "f:a": {} } },
      },
    ],
  },
};

test("lists each owned field by path, with its owner and operation", () => {
  expect(listFieldOwners(POOL, { sensitive: false })).toEqual([
    { path: "spec.a", manager: "old", operation: "Update" },
    {
      path: "spec.ports[name=web].port",
      manager: "kubectl",
      operation: "Apply",
      at: "2026-01-01T00:00:00Z",
    },
    { path: "status.ready", manager: "konverge/web", operation: "Update", subresource: "status" },
  ]);
});

test("P12: omits selectors of sensitive kinds; an object without owners has none", () => {
  const [, port] = listFieldOwners(POOL, { sensitive: true });
  expect(port?.path).toBe("spec.ports[…].port");
  expect(listFieldOwners({ ...POOL, metadata: { name: "a" } }, { sensitive: false })).toEqual([]);
});
