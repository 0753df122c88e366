import { expect, test } from "vitest";
import type { Outcome } from "@konverge/core";
import { expectNothingLeft, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const done: Outcome = { kind: "done" };
const http = { kind: "http" } as const;
const watch = { kind: "watch" } as const;

test("P2: requests of a waiting key become one attempt with all their triggers", async () => {
  const queue = harness.open();
  const accepted = [];
  for (const reason of ["one", "two", "three"]) {
    accepted.push(await queue.request(keyOf("a"), { ...http, reason }));
  }
  expect(accepted.map(({ number, coalesced }) => [number, coalesced])).toEqual([
    [1, false],
    [2, true],
    [3, true],
  ]);
  expect(await queue.counts()).toEqual({ waiting: 1, active: 0, delayed: 0 });

  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(1);
  expect(worker.started[0]?.triggers.map(({ reason }) => reason)).toEqual(["one", "two", "three"]);
  for (const { id } of accepted) {
    expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  }
});

test("P2: requests during an attempt become one follow-up, never a concurrent attempt", async () => {
  const queue = harness.open();
  const first = hold();
  let running = 0;
  const worker = workOn(
    queue,
    async () => {
      running += 1;
      expect(running).toBe(1);
      if (worker.started.length === 1) await first.wait();
      running -= 1;
      return done;
    },
    { concurrency: 8 },
  );
  await queue.request(keyOf("a"), http);
  await until("the first attempt", () => worker.started.length === 1);
  const later = await Promise.all(
    ["x", "y", "z"].map((reason) => queue.request(keyOf("a"), { ...watch, reason })),
  );
  expect(later.filter(({ coalesced }) => coalesced)).toHaveLength(2);
  expect(await queue.getKey(keyOf("a"))).toMatchObject({ phase: "running", covered: 1 });
  first.release();
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(2);
  expect(worker.started[1]?.triggers).toHaveLength(3);
  expect(await queue.getKey(keyOf("a"))).toMatchObject({
    phase: "idle",
    requested: 4,
    finished: 4,
  });
});

test("a request is finished by the first attempt that began after it, not by an earlier one", async () => {
  const queue = harness.open();
  const holds = [hold(), hold()];
  const worker = workOn(queue, async () => {
    await holds[worker.started.length - 1]?.wait();
    return { outcome: done, record: `{"run":${worker.started.length}}` };
  });
  const first = await queue.request(keyOf("a"), http);
  await until("the first attempt", () => worker.started.length === 1);
  const second = await queue.request(keyOf("a"), http);
  expect(await queue.getRequest(first.id)).toMatchObject({ phase: "running", attempts: 1 });
  expect(await queue.getRequest(second.id)).toMatchObject({ phase: "waiting", attempts: 0 });
  holds[0]?.release();
  await until("the second attempt", () => worker.started.length === 2);
  expect(await queue.getRequest(first.id)).toMatchObject({ phase: "finished", attempts: 1 });
  expect(await queue.getRequest(second.id)).toMatchObject({ phase: "running", attempts: 1 });
  holds[1]?.release();
  await until("the second request", async () => {
    const { phase } = await queue.getRequest(second.id);
    return phase === "finished";
  });
  const attempts = await queue.listAttempts(keyOf("a"));
  expect(attempts.map(({ id, record }) => [id, record])).toEqual([
    ["2", '{"run":2}'],
    ["1", '{"run":1}'],
  ]);
});

test("unknown ids are not found", async () => {
  const queue = harness.open();
  const { id } = await queue.request(keyOf("a"), http);
  for (const unknown of ["", "nonsense", id.replace("@1", "@2"), id.replace("@1", "@01")]) {
    await expect(queue.getRequest(unknown)).rejects.toMatchObject({ code: "not_found" });
  }
  expect(await queue.getKey(keyOf("never"))).toBeUndefined();
  await expect(queue.request({ ...keyOf("a"), controller: "other" }, http)).rejects.toMatchObject({
    code: "invalid_key",
  });
});

test("a more urgent request overtakes others, also if its key is already waiting", async () => {
  const queue = harness.open();
  for (const name of ["resync-1", "resync-2", "raised"]) {
    await queue.request(keyOf(name), { kind: "resync" }, { class: "background" });
  }
  await queue.request(keyOf("event"), watch);
  await queue.request(keyOf("raised"), http, { class: "interactive" });
  const worker = workOn(queue, () => done, { concurrency: 1 });
  await expectNothingLeft(harness, queue);
  expect(worker.started.map(({ key }) => key.name)).toEqual([
    "raised",
    "event",
    "resync-1",
    "resync-2",
  ]);
  expect(worker.started[0]?.class).toBe("interactive");
});

test("the floor is the highest comparable version of the triggers", async () => {
  const queue = harness.open();
  for (const resourceVersion of ["99", "1001", "abc", "1000", "007"]) {
    await queue.request(keyOf("a"), { ...watch, resourceVersion });
  }
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  expect(worker.started[0]?.floor).toBe("1001");
});

test("the trigger list keeps the newest 20; floor and class are stored separately", async () => {
  const queue = harness.open();
  for (let n = 1; n <= 25; n++) {
    await queue.request(keyOf("a"), { ...watch, reason: `${n}`, resourceVersion: `${1_000 - n}` });
  }
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  const [attempt] = worker.started;
  expect(attempt?.triggers.map(({ reason }) => Number(reason))).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 6),
  );
  expect(attempt?.floor).toBe("999");
});

test("two installations in one Redis are separate", async () => {
  const [one, other] = [harness.open(), harness.open({ prefix: `${harness.prefix}:b` })];
  await one.request(keyOf("a"), http);
  const worker = workOn(other, () => done);
  await other.request(keyOf("b"), http);
  await expectNothingLeft({ ...harness, prefix: `${harness.prefix}:b` }, other);
  expect(worker.started.map(({ key }) => key.name)).toEqual(["b"]);
  expect(await one.counts()).toMatchObject({ waiting: 1 });
});
