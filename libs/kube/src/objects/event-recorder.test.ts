import type { JsonObject, ResourceRef } from "@konverge/core";
import { expect, test } from "vitest";
import type { KubeClient } from "../contract/kube-client.ts";
import { KubeApiError } from "../errors/kube-api-error.ts";
import { createEventRecorder } from "./event-recorder.ts";

const regarding: ResourceRef = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  namespace: "n",
  name: "a",
  uid: "u",
};
const event = { type: "Normal", reason: "Scaled", message: "to 3" } as const;

/** Collects the writes; a test can let them fail. */
function open() {
  const created: JsonObject[] = [];
  const counts: number[] = [];
  const state: { nowMs: number; failure: Error | undefined } = { nowMs: 0, failure: undefined };
  const client = {
    server: "https://a",
    create: async (_: unknown, object: JsonObject) => {
      if (state.failure !== undefined) throw state.failure;
      created.push(object);
    },
    patch: async (_: unknown, __: unknown, { body }: { body: { series: { count: number } } }) => {
      if (state.failure !== undefined) throw state.failure;
      counts.push(body.series.count);
    },
  } as unknown as KubeClient;
  const recorder = createEventRecorder("konverge/test", () => state.nowMs);
  const record = (input: { readonly message?: string } = {}, about = regarding) =>
    recorder.record(client, about, { ...event, ...input });
  return { created, counts, state, record };
}

test("writes a repeated event when its count has doubled, so calls grow with the logarithm", async () => {
  const { created, counts, record } = open();
  for (let n = 0; n < 1_000; n += 1) await record();
  expect(created).toMatchObject([
    { note: "to 3", action: "Reconcile", regarding: { name: "a", uid: "u" } },
  ]);
  expect(counts).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512]);
});

test("also writes the count after a minute, and begins a new series after six without the event", async () => {
  const { created, counts, state, record } = open();
  for (let n = 0; n < 3; n += 1) await record();
  state.nowMs += 61_000;
  await record();
  await record();
  expect(counts).toEqual([2, 4]);
  state.nowMs += 61_000;
  await record();
  expect(counts).toEqual([2, 4, 6]);
  state.nowMs += 6 * 60_000;
  await record();
  expect([created.length, counts]).toEqual([2, [2, 4, 6]]);
});

test("drops different events of an object beyond 25 and one per five minutes", async () => {
  const { created, state, record } = open();
  for (let n = 0; n < 100; n += 1) await record({ message: `to ${n}` });
  expect(created).toHaveLength(25);
  expect(await record({ message: "again" })).toBe("dropped");
  expect(await record({}, { ...regarding, name: "b" })).toBe("recorded");
  state.nowMs += 5 * 60_000;
  expect(await record({ message: "later" })).toBe("recorded");
  expect(await record({ message: "too many" })).toBe("dropped");
});

test("creates an event again after a failure, or after its expiry", async () => {
  const { created, state, record } = open();
  state.failure = new Error("unreachable");
  await expect(record()).rejects.toThrow("unreachable");
  state.failure = undefined;
  await record();
  state.failure = new KubeApiError("expired", { status: 404, reason: "NotFound", verb: "patch" });
  await record();
  state.failure = undefined;
  await record();
  expect(created).toHaveLength(2);
});

test("truncates words and notes to the bytes that the API server accepts", async () => {
  const { created, record } = open();
  await record({ message: "é".repeat(1_000) });
  expect(created).toMatchObject([{ note: "é".repeat(512) }]);
});
