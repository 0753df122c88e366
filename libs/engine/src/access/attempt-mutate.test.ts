import { defined, type ApiObject } from "@konverge/core";
import { createAttemptSecrets, type MutateCallOptions } from "@konverge/kube";
import { Deployment } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { createLaneChange } from "./attempt-mutate.ts";
import type { Attempt } from "./attempt.ts";
import { createFreshReads } from "./fresh-reads.ts";

/** An attempt whose writes return the object. */
function setUp(object: ApiObject) {
  const cached: ApiObject[] = [];
  const recorded: unknown[] = [];
  const attempt: unknown = {
    call: (run: () => unknown) => run(),
    client: {
      isSensitive: () => false,
      mutate: async () => ({ kind: "updated", object, tries: 1, lost: 0, beforeVersion: "1" }),
    },
    freshReads: createFreshReads(),
    lease: { key: { namespace: "n" } },
    runtime: {
      conflictRetry: "both",
      cache: { noteWrite: (_: unknown, each: ApiObject) => cached.push(each) },
    },
    trace: {
      secrets: createAttemptSecrets(),
      noteWrite: (write: unknown) => recorded.push(write),
    },
  };
  return { change: createLaneChange(attempt as Attempt), cached, recorded };
}

test.each([
  { kind: "Deployment", subresource: undefined, isCached: true },
  { kind: "Deployment", subresource: "status", isCached: true },
  // It has the name and the uid of its Deployment.
  { kind: "Scale", subresource: "scale", isCached: false },
] as const)(
  "notes a written $kind for the cache: $isCached (subresource $subresource)",
  async ({ kind, subresource, isCached }) => {
    const metadata = { name: "a", namespace: "n", uid: "u", resourceVersion: "2" };
    const { change, cached, recorded } = setUp({ apiVersion: "v1", kind, metadata });
    const how: MutateCallOptions = { strategy: "fields", ...defined({ subresource }) };
    await change({ type: Deployment, name: "a" }, () => undefined, how);
    expect(recorded).toHaveLength(1);
    expect(cached).toHaveLength(isCached ? 1 : 0);
  },
);
