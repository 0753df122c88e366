import type { WorkQueue } from "@konverge/queue";
import { expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const watch = { kind: "watch" } as const;
const resync = { kind: "resync" } as const;
const headAgeMs = async (queue: WorkQueue) => (await queue.backlog()).headAgeMs;

test.each([1, 4])(
  "returns the age of the next key on %i shards, and 0 without waiting keys",
  async (shards) => {
    const queue = harness.open({ shards });
    expect(await headAgeMs(queue)).toBe(0);
    await queue.request(keyOf("old"), watch);
    await until("it has waited for a moment", async () => (await headAgeMs(queue)) > 50);
    const before = await headAgeMs(queue);
    await queue.request(keyOf("young"), watch);
    // A second request of the same key does not reset the age.
    await queue.request(keyOf("old"), watch);
    expect(await headAgeMs(queue)).toBeGreaterThanOrEqual(before);

    const worker = workOn(queue, () => ({ kind: "done" }));
    await until("both have run", () => worker.started.length >= 2);
    await until("none waits", async () => (await headAgeMs(queue)) === 0);
  },
);

test("a user request is first and determines the age", async () => {
  const queue = harness.open();
  await queue.request(keyOf("old"), watch);
  await until("it has waited for a moment", async () => (await headAgeMs(queue)) > 200);
  const before = await headAgeMs(queue);
  const fromMs = performance.now();
  await queue.request(keyOf("now"), { kind: "cli" }, { class: "interactive" });
  const ageMs = await headAgeMs(queue);
  // The age that the old request has reached by now.
  expect(ageMs).toBeLessThan(before + performance.now() - fromMs);
});

test("does not count backoff as waiting", async () => {
  const queue = harness.open();
  const slow = {
    baseMs: 60_000,
    factor: 1,
    capMs: 60_000,
    steps: Infinity,
    jitter: { kind: "none" },
  } as const;
  const worker = workOn(queue, () => ({ kind: "retry", error: new Error("broken") }), {
    backoffs: { conflict: slow, failure: slow, rejected: slow },
  });
  await queue.request(keyOf("a"), watch);
  await until("it backs off", async () => (await queue.counts()).delayed === 1);
  await worker.stop();
  expect(await headAgeMs(queue)).toBe(0);
});

test.each([1, 4])("separates resyncs from changes on %i shards", async (shards) => {
  const queue = harness.open({ shards });
  for (let at = 0; at < 20; at += 1) {
    await queue.request(keyOf(`resynced-${at}`), resync, { class: "background" });
  }
  await until("they have waited for a moment", async () => (await headAgeMs(queue)) > 50);
  expect(await queue.backlog()).toMatchObject({ changeAgeMs: 0 });
  await queue.request(keyOf("changed"), watch);
  // A change of a key that a resync has requested counts from its oldest request.
  await until("the change has waited", async () => (await queue.backlog()).changeAgeMs > 0);
  workOn(queue, () => ({ kind: "done" }));
  await until("none waits", async () => (await headAgeMs(queue)) === 0);
  expect(await queue.backlog()).toMatchObject({ changeAgeMs: 0 });
});

test("counts dead-lettered and paused keys until an operator acts", async () => {
  const queue = harness.open({ shards: 2 });
  const by = { by: "ada", reason: "a test" };
  const worker = workOn(queue, ({ id }) =>
    id.endsWith("/bad") ? { kind: "terminal", error: new Error("broken") } : { kind: "done" },
  );
  await queue.request(keyOf("bad"), watch);
  await until("it is dead-lettered", async () => (await queue.backlog()).deadLettered === 1);
  await queue.control.pause({ kind: "key", key: keyOf("held") }, by);
  await queue.request(keyOf("held"), watch);
  await until("it is paused", async () => (await queue.backlog()).paused === 1);
  await queue.control.resume({ kind: "key", key: keyOf("held") }, by);
  // A running worker would dead-letter the key again.
  await worker.stop();
  await queue.control.release({ key: keyOf("bad") }, by);
  expect(await queue.backlog()).toMatchObject({ deadLettered: 0, paused: 0 });
});
