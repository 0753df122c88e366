import { expect, test } from "vitest";
import type { BackoffPolicy, Outcome } from "@konverge/core";
import type { RequestClass, WorkQueue } from "@konverge/queue";
import { expectNothingLeft, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const done: Outcome = { kind: "done" };
const conflict: Outcome = { kind: "conflict", error: new Error("lost the race") };
const failed: Outcome = { kind: "retry", error: new Error("broken") };
const http = { kind: "http" } as const;

const policy = (baseMs: number, factor = 2): BackoffPolicy => ({
  baseMs,
  factor,
  capMs: 100_000,
  steps: Infinity,
  jitter: { kind: "none" },
});
const quick = { conflict: policy(1), failure: policy(3), rejected: policy(5) };
const slow = { conflict: policy(60_000), failure: policy(60_000), rejected: policy(60_000) };

/** Ends the attempts of one key with these outcomes in order, then with done. */
function script(...outcomes: readonly Outcome[]): () => Outcome {
  let at = 0;
  return () => outcomes[at++] ?? done;
}

test("P7: conflicts and failures have separate counters and backoffs; success resets both", async () => {
  const queue = harness.open();
  const worker = workOn(queue, script(conflict, conflict, failed, conflict, failed), {
    backoffs: quick,
  });
  await queue.request(keyOf("a"), http);
  await expectNothingLeft(harness, queue);
  expect(worker.closed.map(({ outcome, retryAfterMs }) => [outcome, retryAfterMs])).toEqual([
    ["conflict", 1],
    ["conflict", 2],
    ["retry", 3],
    ["conflict", 4],
    ["retry", 6],
    ["done", undefined],
  ]);
  expect(worker.started.map((a) => [a.attempt, a.conflicts, a.failures, a.class])).toEqual([
    [1, 0, 0, "event"],
    [2, 1, 0, "retry"],
    [3, 2, 0, "retry"],
    [4, 2, 1, "retry"],
    [5, 3, 1, "retry"],
    [6, 3, 2, "retry"],
  ]);
  await queue.request(keyOf("a"), http);
  await until("one more", () => worker.started.length === 7);
  expect(worker.started[6]).toMatchObject({ attempt: 1, conflicts: 0, failures: 0 });
});

test("a server's Retry-After replaces a shorter delay", async () => {
  const queue = harness.open();
  const worker = workOn(queue, script({ ...failed, retryAfterMs: 70 }), { backoffs: quick });
  await queue.request(keyOf("a"), http);
  await expectNothingLeft(harness, queue);
  expect(worker.closed[0]?.retryAfterMs).toBe(70);
});

test("a deferral is not counted, does not end on new events, and loses no request", async () => {
  const queue = harness.open();
  const deferred: Outcome = { kind: "deferred", afterMs: 1_000, cause: "breaker open" };
  const worker = workOn(queue, script(deferred), { backoffs: quick });
  const accepted = await queue.request(keyOf("a"), http);
  await until("the deferral", () => worker.closed.length === 1);
  const later = await queue.request(keyOf("a"), http, { class: "interactive" });
  const state = await queue.getKey(keyOf("a"));
  expect(state).toMatchObject({ phase: "backoff", failures: 0, conflicts: 0 });
  await expectNothingLeft(harness, queue);
  const [first, second] = worker.started;
  expect([first?.attempt, second?.attempt]).toEqual([1, 1]);
  expect(worker.started).toHaveLength(2);
  expect(second?.startedAtMs).toBeGreaterThanOrEqual(Date.parse(state?.nextAt ?? ""));
  for (const { id } of [accepted, later]) {
    expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  }
});

test("ends a backoff on a new event, but not on a resync", async () => {
  const queue = harness.open();
  const worker = workOn(queue, script(failed), { backoffs: slow });
  await queue.request(keyOf("a"), http);
  await until("the backoff", async () => (await queue.counts()).delayed === 1);
  await queue.request(keyOf("a"), { kind: "resync" }, { class: "background" });
  // A job whose backoff ended would be waiting or active immediately: the script that adds it does both.
  expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 1 });
  await queue.request(keyOf("a"), { kind: "watch" });
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(2);
  expect(worker.started[1]).toMatchObject({ failures: 1, attempt: 2 });
});

/** Fails while a request of `requestClass` is parked; a second attempt of the key succeeds. */
async function parkDuringFailure(queue: WorkQueue, requestClass: RequestClass) {
  const held = hold();
  const worker = workOn(
    queue,
    async () => {
      if (worker.started.length > 1) return done;
      await held.wait();
      return failed;
    },
    { backoffs: slow },
  );
  await queue.request(keyOf("a"), http);
  await until("the attempt", () => worker.started.length === 1);
  await queue.request(keyOf("a"), { kind: "watch" }, { class: requestClass });
  held.release();
  return worker;
}

test("a follow-up for a new event, parked during a failing attempt, ends the backoff", async () => {
  const queue = harness.open();
  const worker = await parkDuringFailure(queue, "event");
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(2);
});

test("a follow-up without a new event, parked during a failing attempt, waits for the backoff", async () => {
  const queue = harness.open();
  const worker = await parkDuringFailure(queue, "background");
  await until("the backoff", async () => (await queue.counts()).delayed === 1);
  // After another key has run, the check for new events after the failure is over.
  await queue.request(keyOf("other"), http);
  await until("another key", () => worker.closed.length === 2);
  // Its job ends after the attempt.
  await until("its job has ended", async () => (await queue.counts()).active === 0);
  expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 1 });
});

test("terminal: the key ignores events, keeps their requests, and runs again on a user request", async () => {
  const queue = harness.open();
  const worker = workOn(queue, script({ kind: "terminal", error: new Error("hopeless") }));
  const first = await queue.request(keyOf("a"), http);
  await expectNothingLeft(harness, queue);
  expect(await queue.getRequest(first.id)).toMatchObject({
    phase: "finished",
    outcome: "terminal",
    error: { code: "terminal", message: "hopeless" },
  });
  const event = await queue.request(keyOf("a"), { kind: "watch" });
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(1);
  expect(await queue.getKey(keyOf("a"))).toMatchObject({
    phase: "deadLettered",
    requested: 2,
    finished: 1,
  });
  expect(await queue.getRequest(event.id)).toMatchObject({ phase: "waiting" });

  await queue.request(keyOf("a"), http, { class: "interactive" });
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(2);
  expect(worker.started[1]).toMatchObject({
    failures: 0,
    triggers: [{ kind: "watch" }, { kind: "http" }],
  });
  expect(await queue.getRequest(event.id)).toMatchObject({ phase: "finished", outcome: "done" });
});

test("terminal: a user request during the last attempt gets an attempt of its own", async () => {
  const queue = harness.open();
  const held = hold();
  const worker = workOn(queue, async () => {
    await held.wait();
    return worker.started.length > 1
      ? { kind: "done" }
      : { kind: "terminal", error: new Error("hopeless") };
  });
  await queue.request(keyOf("a"), { kind: "watch" });
  await until("it runs", () => worker.started.length === 1);
  const { id } = await queue.request(keyOf("a"), http, { class: "interactive" });
  held.release();
  await expectNothingLeft(harness, queue);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  expect(worker.started[1]).toMatchObject({ failures: 0 });
});

test("terminal: a new generation releases the key, the same one does not", async () => {
  const queue = harness.open();
  const worker = workOn(queue, script({ kind: "terminal", error: new Error("hopeless") }));
  for (const [generation, runs] of [
    [3, 1],
    [3, 1],
    [4, 2],
  ] as const) {
    await queue.request(keyOf("a"), { kind: "watch", generation });
    await expectNothingLeft(harness, queue);
    expect(worker.started).toHaveLength(runs);
  }
});

test("maxFailures consecutive failures dead-letter a key; without the option, none is", async () => {
  const queue = harness.open();
  const worker = workOn(queue, () => failed, {
    backoffs: { ...quick, failure: policy(1, 1) },
    maxFailures: 4,
  });
  await queue.request(keyOf("a"), http);
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(4);
  expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "deadLettered", failures: 4 });
});

test("a new generation resets the count of failures", async () => {
  const queue = harness.open();
  const worker = workOn(queue, script(conflict, ...Array.from({ length: 9 }, () => failed)), {
    backoffs: { ...slow, conflict: quick.conflict },
    maxFailures: 3,
  });
  const ask = async (generation: number, runs: number) => {
    await queue.request(keyOf("a"), { kind: "watch", generation });
    await until(`${runs} attempts`, () => worker.closed.length === runs);
  };
  await ask(1, 2);
  await ask(1, 3);
  await ask(2, 4);
  await ask(2, 5);
  // The writer of the new generation may be the competing writer.
  expect(worker.started.map(({ failures, conflicts }) => [failures, conflicts])).toEqual([
    [0, 0],
    [0, 1],
    [1, 1],
    [0, 1],
    [1, 1],
  ]);
  expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "backoff", failures: 2 });
  await ask(2, 6);
  expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "deadLettered", failures: 3 });
});

test("backoff grows with the number of failing keys, so that all retries stay below the fleet's limit", async () => {
  const queue = harness.open();
  const keys = 20;
  const worker = workOn(queue, () => failed, {
    backoffs: { ...quick, failure: { ...policy(1, 1_000), capMs: 20 } },
    retriesPerSecond: 0.001,
  });
  for (let n = 0; n < keys; n++) await queue.request(keyOf(`${n}`), { kind: "watch" });
  const last = () => new Map(worker.closed.map(({ id, retryAfterMs }) => [id, retryAfterMs]));
  await until(
    "all of them wait for long",
    () => last().size === keys && [...last().values()].every((ms) => ms === 1_000_000),
  );
  // An end is reported before BullMQ has moved the job.
  await expect.poll(() => queue.counts()).toMatchObject({ waiting: 0, active: 0 });
});

test("drops an oversized record and reports it", async () => {
  const queue = harness.open();
  const worker = workOn(queue, () => ({ outcome: done, record: `"${"x".repeat(20_000)}"` }));
  await queue.request(keyOf("a"), http);
  await expectNothingLeft(harness, queue);
  const [attempt] = await queue.listAttempts(keyOf("a"));
  expect(attempt?.record).toBe('{"droppedBytes":20002}');
  expect(worker.errors[0]?.message).toContain("20002 bytes");
});
