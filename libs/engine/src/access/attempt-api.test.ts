import type { ApiObject, JsonValue } from "@konverge/core";
import { createAttemptSecrets, type ForwardAnswer, type ForwardRequest } from "@konverge/kube";
import { CoreV1Api } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { createAttemptApi } from "./attempt-api.ts";
import type { Attempt } from "./attempt.ts";
import { isDryRun } from "@konverge/kube";

const object = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "a", namespace: "n", uid: "u", resourceVersion: "7" },
};

/** Each call returns this object. */
function setUp() {
  const written: ApiObject[] = [];
  const deleted: ApiObject[] = [];
  const secrets = createAttemptSecrets();
  const recorded: unknown[] = [];
  const answerTo = ({ body }: ForwardRequest): ForwardAnswer => ({
    status: 200,
    headers: { "content-type": "application/json" },
    text: JSON.stringify(object),
    sent: body === undefined ? undefined : (JSON.parse(body) as JsonValue),
    value: object,
    error: undefined,
    target: { group: "", version: "v1", kind: "", resource: "secrets", namespace: "n", name: "a" },
  });
  const attempt: unknown = {
    call: (run: () => unknown) => run(),
    client: {
      forward: async (request: ForwardRequest) => answerTo(request),
      isSensitive: () => true,
    },
    trace: { secrets, noteWrite: (write: unknown) => recorded.push(write) },
    runtime: {
      cache: {
        noteWrite: (_: unknown, each: ApiObject) => written.push(each),
        noteDelete: (_: unknown, each: ApiObject) => deleted.push(each),
      },
    },
  };
  const core = createAttemptApi(attempt as Attempt)(CoreV1Api);
  return { core, written, deleted, recorded, secrets };
}
const at = { name: "a", namespace: "n" };

test("notes a write for the cache and the record, unless it is a dry run", async () => {
  const { core, written, deleted, recorded } = setUp();
  const body = { metadata: { name: "a" } };
  await core.createNamespacedSecret({ namespace: "n", body, dryRun: "All" });
  await core.deleteNamespacedSecret({ ...at, dryRun: "All" });
  await core.deleteNamespacedSecret({ ...at, body: { dryRun: ["All"] } });
  expect([written, deleted, recorded]).toEqual([[], [], []]);
  await core.createNamespacedSecret({ namespace: "n", body });
  // With a body, the server ignores the query.
  await core.deleteNamespacedSecret({ ...at, dryRun: "All", body: {} });
  expect([written.length, deleted.length, recorded.length]).toEqual([1, 1, 2]);
});

test("P12: notes the values of a JSON patch of a Secret", async () => {
  const { core, secrets } = setUp();
  const value = Buffer.from("canary-canary").toString("base64");
  const body = [{ op: "replace", path: "/data/password", value }];
  await core.patchNamespacedSecret({ ...at, body });
  expect(secrets.scrub(`rejected ${value}`)).toBe("rejected (redacted)");
  expect(secrets.scrub("/data/password")).toBe("/data/password");
});

test("a dry run may be in the query of the path, in the query and in the body of a delete", () => {
  const sent = { method: "POST", path: "/api/v1/pods", body: undefined };
  expect(isDryRun(sent)).toBe(false);
  expect(isDryRun({ ...sent, path: "/api/v1/pods?a=b&dryRun=All" })).toBe(true);
  expect(isDryRun({ ...sent, query: { dryRun: "All" } })).toBe(true);
  expect(isDryRun({ ...sent, body: { dryRun: ["All"] } })).toBe(false);
  expect(isDryRun({ ...sent, method: "DELETE", body: { dryRun: ["All"] } })).toBe(true);
});
