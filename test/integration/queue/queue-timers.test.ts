import { expect, test } from "vitest";
import type { Outcome } from "@konverge/core";
import { expectNothingLeft, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const done: Outcome = { kind: "done" };
const again = (afterMs: number): Outcome => ({ kind: "requeueAfter", afterMs });

test("requeueAfter chains continue: every attempt arms the next", async () => {
  const queue = harness.open();
  const chains = 20;
  const rounds = 5;
  const runs = new Map<string, number>();
  const workers = [1, 2].map((n) =>
    workOn(
      queue,
      ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1);
        return (runs.get(id) ?? 0) < rounds ? again(10) : done;
      },
      { workerId: `w${n}` },
    ),
  );
  for (let n = 0; n < chains; n++) await queue.request(keyOf(`k${n}`), { kind: "http" });
  await until("all chains", () => [...runs.values()].filter((n) => n === rounds).length === chains);
  await expectNothingLeft(harness, queue);
  const fired = workers
    .flatMap(({ started }) => started)
    .filter(({ triggers }) => triggers[0]?.kind === "schedule");
  expect(fired).toHaveLength(chains * (rounds - 1));
});

test("keeps the earliest requeueAfter", async () => {
  const queue = harness.open();
  const soon = Date.now() + 60_000;
  await queue.requestAt(keyOf("a"), soon + 5_000);
  await queue.requestAt(keyOf("a"), soon);
  await queue.requestAt(keyOf("a"), soon + 9_000);
  await queue.request(keyOf("a"), { kind: "http" });
  workOn(queue, () => again(3_600_000));
  await expectNothingLeft(harness, queue);
  expect((await queue.getKey(keyOf("a")))?.nextAt).toBe(new Date(soon).toISOString());
});

test("P1: a timer that is due while its key runs is not lost", async () => {
  const queue = harness.open();
  const held = hold();
  const worker = workOn(queue, async () => {
    if (worker.started.length === 1) await held.wait();
    return done;
  });
  await queue.request(keyOf("a"), { kind: "http" });
  await until("the attempt", () => worker.started.length === 1);
  await queue.requestAt(keyOf("a"), Date.now());
  await until(
    "the request of the timer",
    async () => (await queue.getKey(keyOf("a")))?.requested === 2,
  );
  held.release();
  await expectNothingLeft(harness, queue);
  expect(worker.started).toHaveLength(2);
});

test("P1: another pump takes over the claim of a crashed one", async () => {
  const queue = harness.open();
  await queue.request(keyOf("a"), { kind: "http" });
  const root = `${harness.prefix}:{default}`;
  await harness.redis.zadd(
    `${root}/firing/node-pool`,
    Date.now() - 1,
    "node-pool/default/nodepools.demo.konverge.dev/demo/b",
  );
  const worker = workOn(queue, () => done);
  await until("both", () => worker.started.length === 2);
  expect(worker.started.map(({ key }) => key.name).toSorted()).toEqual(["a", "b"]);
  await until(
    "the acknowledgement",
    async () => (await harness.redis.exists(`${root}/firing/node-pool`)) === 0,
  );
});

test("does not end a backoff when a timer fires", async () => {
  const queue = harness.open();
  const minute = {
    baseMs: 60_000,
    factor: 1,
    capMs: 60_000,
    steps: 9,
    jitter: { kind: "none" },
  } as const;
  const worker = workOn(queue, () => ({ kind: "retry", error: new Error("broken") }), {
    backoffs: { conflict: minute, failure: minute, rejected: minute },
  });
  await queue.request(keyOf("a"), { kind: "http" });
  await until("the backoff", async () => (await queue.counts()).delayed === 1);
  await queue.requestAt(keyOf("a"), Date.now());
  await until(
    "the request of the timer",
    async () => (await queue.getKey(keyOf("a")))?.requested === 2,
  );
  await until(
    "its acknowledgement",
    async () => (await harness.redis.exists(`${harness.prefix}:{default}/firing/node-pool`)) === 0,
  );
  expect(await queue.counts()).toEqual({ waiting: 0, active: 0, delayed: 1 });
  expect(worker.started).toHaveLength(1);
});
