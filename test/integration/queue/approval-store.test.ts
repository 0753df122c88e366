import { createApprovalStore, proposed } from "@konverge/queue";
import { closeRedis, openProducer, type RedisClient } from "@konverge/redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PATIENT_MS } from "../../support/patient.ts";
import { useQueues } from "./queue-harness.ts";

const queues = useQueues();
let redis: RedisClient;
beforeAll(() => {
  redis = openProducer({ url: process.env["REDIS_URL"] ?? "", deadlineMs: PATIENT_MS });
});
afterAll(() => closeRedis(redis));

const proposalOf = (key: string) => ({
  key,
  controller: "widgets",
  hash: "h",
  summary: {},
  by: 1,
  role: "operator" as const,
  requesters: [],
  since: "",
});

test("the records of plans that wait are limited, and their approvals remain", async () => {
  const { prefix } = queues;
  const store = createApprovalStore(redis, { prefix, cluster: "default" });
  const record = "x".repeat(1_000_000);
  const keys = Array.from({ length: 70 }, (_, number) => `key-${number}`);
  for (const key of keys) {
    await store.change(key, (current) => proposed(current, proposalOf(key)), { record });
  }
  expect(await store.list()).toHaveLength(keys.length);
  expect(await store.readPlan("key-0")).toBeUndefined();
  expect(await store.readPlan("key-2")).toBeUndefined();
  expect(await store.readPlan("key-3")).toBe(record);
  expect(await store.readPlan("key-69")).toBe(record);
  // A removed approval frees its room.
  await store.change("key-69", () => undefined);
  await store.change(
    "key-0",
    (current) => proposed(current, { ...proposalOf("key-0"), hash: "i" }),
    {
      record,
    },
  );
  expect(await store.readPlan("key-3")).toBe(record);
  expect(await store.readPlan("key-0")).toBe(record);
});

test("a user remains a requester if another request was made meanwhile", async () => {
  const { prefix } = queues;
  const store = createApprovalStore(redis, { prefix, cluster: "default" });
  await store.noteRequester("key", "ada");
  await store.noteRequester("key", "bob");
  const applied = await store.requesters("key");
  await store.noteRequester("key", "ada");
  await store.forgetRequesters("key", applied);
  expect([...(await store.requesters("key")).keys()]).toEqual(["ada"]);
});
