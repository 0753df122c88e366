import { expect, test } from "vitest";
import { KubeApiError } from "../errors/kube-api-error.ts";
import { findOwners } from "./ownership-conflict.ts";

const cause = (message: string, field: string) => ({
  type: "FieldManagerConflict",
  message,
  field,
});

test("names each owner with its fields, in the server's order", () => {
  const error = new KubeApiError("Apply failed with 3 conflicts", {
    status: 409,
    reason: "Conflict",
    causes: [
      cause('conflict with "hpa" using apps/v1', ".spec.replicas"),
      cause(
        'conflict with "kubectl" with subresource "status" using v1 at 2026-01-01',
        ".status.a",
      ),
      cause('conflict with "hpa" using apps/v1', ".spec.paused"),
    ],
  });
  expect(findOwners(new Error("wrapped", { cause: error }))).toEqual([
    { manager: "hpa", operation: "", paths: ["spec.replicas", "spec.paused"] },
    { manager: "kubectl", operation: "", subresource: "status", paths: ["status.a"] },
  ]);
});

test("has no owners for a stale version", () => {
  expect(findOwners(new KubeApiError("x", { status: 409, reason: "Conflict" }))).toEqual([]);
  expect(findOwners(new Error("x"))).toEqual([]);
});
