import { expect, test } from "vitest";
import { KubeApiError } from "../errors/kube-api-error.ts";
import { findOwners } from "./ownership-conflict.ts";

const cause = (message: string, field: string) => ({
  type: "FieldManagerConflict",
  message,
  field,
});

test("each owner is named with its fields, as the server lists them", () => {
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

test("a stale version is no question of owners", () => {
  expect(findOwners(new KubeApiError("x", { status: 409, reason: "Conflict" }))).toEqual([]);
  expect(findOwners(new Error("x"))).toEqual([]);
});
