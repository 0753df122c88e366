import { expect, test } from "vitest";
import { keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const watch = { kind: "watch" } as const;

test.each([1, 4])(
  "returns the age of the next key on %i shards, and 0 without waiting keys",
  async (shards) => {
    const queue = harness.open({ shards });
    expect(await queue.headAgeMs()).toBe(0);
    await queue.request(keyOf("old"), watch);
    await until("it has waited for a moment", async () => (await queue.headAgeMs()) > 50);
    const before = await queue.headAgeMs();
    await queue.request(keyOf("young"), watch);
    // A second request of the same key does not reset the age.
    await queue.request(keyOf("old"), watch);
    expect(await queue.headAgeMs()).toBeGreaterThanOrEqual(before);

    const worker = workOn(queue, () => ({ kind: "done" }));
    await until("both have run", () => worker.started.length >= 2);
    await until("none waits", async () => (await queue.headAgeMs()) === 0);
  },
);

test("a user request is first and determines the age", async () => {
  const queue = harness.open();
  await queue.request(keyOf("old"), watch);
  await until("it has waited for a moment", async () => (await queue.headAgeMs()) > 200);
  const before = await queue.headAgeMs();
  const fromMs = performance.now();
  await queue.request(keyOf("now"), { kind: "cli" }, { class: "interactive" });
  const headAgeMs = await queue.headAgeMs();
  // The age that the old request has reached by now.
  expect(headAgeMs).toBeLessThan(before + performance.now() - fromMs);
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
  expect(await queue.headAgeMs()).toBe(0);
});
