import type { ObjectKey } from "@konverge/core";
import { KubeApiError } from "@konverge/kube";
import { expect, test } from "vitest";
import { createAttemptTrace } from "../access/attempt-trace.ts";
import { findHints } from "./find-hints.ts";

const key: ObjectKey = {
  controller: "web",
  cluster: "default",
  resource: "apps",
  group: "example.com",
  namespace: "demo",
  name: "shop",
};

test.each([
  { verb: "list", namespace: "demo", hint: 'type: Secret, verbs: ["list"] }], for namespace demo' },
  { verb: "apply", namespace: undefined, hint: 'type: Secret, verbs: ["patch"] }], for all' },
] as const)("missing_permission names the entry for $verb", ({ verb, namespace, hint }) => {
  const ref = { group: "", version: "v1", kind: "Secret", resource: "secrets" };
  const error = new KubeApiError("list secrets: 403 Forbidden", {
    status: 403,
    reason: "Forbidden",
    trait: "notPermitted",
    verb,
    ref: namespace === undefined ? ref : { ...ref, namespace },
  });
  const run = { outcome: { kind: "rejected", error }, trace: createAttemptTrace() } as const;
  expect(findHints({ ...run, object: undefined }, key)).toEqual([
    { code: "missing_permission", message: expect.stringContaining(`permissions: [{ ${hint}`) },
  ]);
});
