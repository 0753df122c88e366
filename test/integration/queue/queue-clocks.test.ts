import { fileURLToPath } from "node:url";
import { formatKey, type Outcome } from "@konverge/core";
import { expect, test } from "vitest";
import type { ClockChildConfig } from "./queue-clock-child.ts";
import {
  CLUSTER,
  CONTROLLER,
  expectNothingLeft,
  keyOf,
  useQueues,
  workOn,
} from "./queue-harness.ts";
import { useChildren } from "../../support/child.ts";
import { until } from "../../support/until.ts";

/** Processes with wrong clocks. Redis's clock applies to requests, leases and timers; BullMQ uses the workers' for backoffs. */

const harness = useQueues();
const CHILD = fileURLToPath(new URL("queue-clock-child.ts", import.meta.url));
const HOUR_MS = 3_600_000;
const http = { kind: "http" } as const;
const done: Outcome = { kind: "done" };
const failed: Outcome = { kind: "retry", error: new Error("broken") };
const hour = {
  baseMs: HOUR_MS,
  factor: 1,
  capMs: HOUR_MS,
  steps: Infinity,
  jitter: { kind: "none" },
} as const;
const backoffs = { conflict: hour, failure: hour, rejected: hour };

const startChild = useChildren();

function start(config: Pick<ClockChildConfig, "aheadMs" | "mode"> & { backoffMs?: number }) {
  const { url, prefix } = harness;
  const whole = { url, prefix, key: formatKey(keyOf("a")), backoffMs: HOUR_MS, ...config };
  return startChild([CHILD, JSON.stringify(whole satisfies ClockChildConfig)]);
}

/** Returns the time until BullMQ starts the key's job, in ms by Redis's clock. */
async function dueInMs(): Promise<number | undefined> {
  const delayed = `${harness.prefix}:{${CLUSTER}}:${CONTROLLER}:delayed`;
  const [, score] = await harness.redis.zrange(delayed, "0", "0", "WITHSCORES");
  return score === undefined ? undefined : Math.floor(Number(score) / 4_096) - Date.now();
}

test.each([
  ["ahead", 2 * HOUR_MS],
  ["behind", -2 * HOUR_MS],
])("a request from a process whose clock is %s ends a backoff at once", async (_, aheadMs) => {
  const queue = harness.open();
  const worker = workOn(queue, () => (worker.started.length > 1 ? done : failed), { backoffs });
  await queue.request(keyOf("a"), http);
  await until("the backoff", async () => (await queue.counts()).delayed === 1);
  const { messages } = start({ aheadMs, mode: "request" });
  await until("the request", () => messages.length === 1);
  await expectNothingLeft(harness, queue);
  expect(await queue.getRequest(String(messages[0]?.["requested"]))).toMatchObject({
    phase: "finished",
    outcome: "done",
  });
});

test("a worker whose clock is ahead ends shorter backoffs early, for all workers", async () => {
  const queue = harness.open();
  const worker = workOn(queue, () => failed, { backoffs, concurrency: 1 });
  const { id } = await queue.request(keyOf("a"), http);
  await until("the backoff", async () => (await queue.counts()).delayed === 1);
  await worker.stop();
  const { messages } = start({ aheadMs: 2 * HOUR_MS, mode: "work" });
  await until("the early start", () => messages.length === 1);
  await expectNothingLeft(harness, queue);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", attempts: 2 });
});

test("a failure on a worker whose clock is ahead backs off longer elsewhere, unless a new event arrives", async () => {
  const queue = harness.open();
  const { id } = await queue.request(keyOf("a"), http);
  const child = start({ aheadMs: 2 * HOUR_MS, mode: "work", backoffMs: HOUR_MS });
  const dueMs = await until("the backoff", dueInMs);
  await child.kill();
  expect(dueMs).toBeGreaterThan(2 * HOUR_MS);
  workOn(queue, () => done);
  await queue.request(keyOf("a"), http, { class: "interactive" });
  await expectNothingLeft(harness, queue);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", attempts: 2 });
});

test("without a new event it waits for its backoff and the aging time, regardless of the clock", async () => {
  const queue = harness.open();
  const { id } = await queue.request(keyOf("a"), http);
  const child = start({ aheadMs: 2 * HOUR_MS, mode: "work", backoffMs: 50 });
  await until("the backoff", dueInMs);
  await child.kill();
  workOn(queue, () => done, { fairness: { agingMs: 200 } });
  await expectNothingLeft(harness, queue);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", attempts: 2 });
});

test("a failure on a worker whose clock is behind backs off less elsewhere, by the offset", async () => {
  const queue = harness.open();
  const { id } = await queue.request(keyOf("a"), http);
  const child = start({ aheadMs: -2 * HOUR_MS, mode: "work", backoffMs: HOUR_MS });
  const dueMs = await until("the backoff", dueInMs);
  await child.kill();
  expect(dueMs).toBeLessThan(0);
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(1);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", attempts: 2 });
});

test.each([
  ["ahead", 2 * HOUR_MS],
  ["behind", -2 * HOUR_MS],
])("P2: a worker whose clock is %s takes no key from one that runs it", async (_, aheadMs) => {
  const queue = harness.open();
  const gate = Promise.withResolvers<void>();
  const worker = workOn(
    queue,
    async () => {
      await gate.promise;
      return done;
    },
    { concurrency: 1 },
  );
  await queue.request(keyOf("a"), http);
  await until("the attempt", () => worker.started.length === 1);
  const { messages } = start({ aheadMs, mode: "work" });
  // A free worker may take either key; it may only get the second.
  await queue.request(keyOf("a"), http);
  await queue.request(keyOf("b"), http);
  await until("the other key", () => messages.length > 0);
  expect(messages).toHaveLength(1);
  gate.resolve();
  await until("the end", () => worker.closed.length > 0);
  expect(worker.closed[0]).toMatchObject({ outcome: "done", fenced: false });
});
