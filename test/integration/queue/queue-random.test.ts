import { expect, test } from "vitest";
import type { BackoffPolicy, Outcome } from "@konverge/core";
import type { AttemptCancelledError, PauseScope } from "@konverge/queue";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { expectNothingLeft, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";
import { seed } from "../../support/test-run.ts";

const harness = useQueues();
const KEYS = 12;
const STEPS = 1_500;
const WORKERS = 3;
const LIVES = 6;
const ORDER = { by: "test", reason: "random" };

const policy: BackoffPolicy = {
  baseMs: 2,
  factor: 2,
  capMs: 40,
  steps: Infinity,
  jitter: { kind: "full" },
};

test("P1, P2: random requests, outcomes, pauses, cancellations and crashes lose no request and run one attempt per key at a time", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(choices: readonly T[]): T => {
    const picked = choices[Math.floor(random() * choices.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  };
  const queue = harness.open();
  const running = new Map<string, number>();
  const overlaps: string[] = [];
  let calm = false;

  const outcomes: readonly (() => Outcome)[] = [
    () => ({ kind: "done" }),
    () => ({ kind: "awaitChange" }),
    () => ({ kind: "conflict", error: new Error("conflict") }),
    () => ({ kind: "retry", error: new Error("retry") }),
    () => ({ kind: "deferred", afterMs: 1 + random() * 30, cause: "test" }),
    () => ({ kind: "requeueAfter", afterMs: 1 + random() * 30 }),
    () => ({ kind: "cancelled", cause: "shutdown" }),
  ];
  const startWorker = (n: number) =>
    workOn(
      queue,
      async ({ id, signal }) => {
        running.set(id, (running.get(id) ?? 0) + 1);
        if ((running.get(id) ?? 0) > 1) overlaps.push(id);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, random() * 6);
          signal.addEventListener("abort", () => {
            clearTimeout(timer);
            resolve();
          });
        });
        running.set(id, (running.get(id) ?? 0) - 1);
        if (signal.aborted) {
          const { reason } = signal.reason as AttemptCancelledError;
          return { kind: "cancelled", cause: reason };
        }
        return calm ? { kind: "done" } : pick(outcomes)();
      },
      {
        workerId: `w${n}`,
        concurrency: 4,
        backoffs: { conflict: policy, failure: policy, rejected: policy },
        random,
      },
    );
  const workers = Array.from({ length: WORKERS }, (_, n) => startWorker(n));
  const ids: string[] = [];
  const cancelled = new Set<string>();
  for (let step = 0; step < STEPS; step++) {
    const key = keyOf(`k${Math.floor(random() * KEYS)}`);
    const choice = random();
    if (choice < 0.02) {
      const index = Math.floor(random() * workers.length);
      await workers[index]?.kill();
      workers[index] = startWorker(WORKERS + step);
    } else if (choice < 0.04) {
      const scope = pick<PauseScope>([
        { kind: "controller" },
        { kind: "namespace", namespace: "demo" },
        { kind: "key", key },
      ]);
      await queue.control.pause(scope, ORDER);
    } else if (choice < 0.07) {
      for (const { scope } of await queue.control.listPauses()) {
        await queue.control.resume(scope, ORDER);
      }
    } else if (choice < 0.1) {
      const id = pick(["", ...ids.slice(-3)]);
      if (id !== "" && (await queue.control.cancel(id, ORDER)) !== "alreadyFinished")
        cancelled.add(id);
    } else if (choice < 0.18) {
      await queue.requestAt(key, Date.now() + random() * 40);
    } else {
      const requestClass = pick(["interactive", "event", "retry", "background"] as const);
      const trigger = { kind: "watch", resourceVersion: `${step + 1}` } as const;
      ids.push((await queue.request(key, trigger, { class: requestClass })).id);
    }
    if (choice > 0.9) await new Promise((resolve) => setTimeout(resolve, random() * 4));
  }
  calm = true;
  for (const { scope } of await queue.control.listPauses()) {
    await queue.control.resume(scope, ORDER);
  }
  await until(
    "timers",
    async () => (await harness.redis.exists(`${harness.prefix}:{default}/timers/node-pool`)) === 0,
  );
  await until(
    "firing",
    async () => (await harness.redis.exists(`${harness.prefix}:{default}/firing/node-pool`)) === 0,
  );
  await expectNothingLeft(harness, queue);

  expect(overlaps).toEqual([]);
  for (let n = 0; n < KEYS; n++) {
    const state = await queue.getKey(keyOf(`k${n}`));
    expect(state).toMatchObject({ phase: "idle", finished: state?.requested });
  }
  for (const id of ids) {
    const { phase, outcome } = await queue.getRequest(id);
    expect([id, phase]).toEqual([id, "finished"]);
    // Every request that was not cancelled had a complete run, regardless of other cancellations.
    if (!cancelled.has(id)) expect([id, outcome]).not.toEqual([id, "cancelled"]);
  }
  for (const set of ["parked", "aborts", "resuming", "pauses"]) {
    expect(await harness.redis.exists(`${harness.prefix}:{default}/${set}/node-pool`)).toBe(0);
  }
  const errors = workers.flatMap((worker) => worker.errors);
  expect(errors).toEqual([]);
});

test("P1: random lives with pauses keep every later time of a key", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const queue = harness.open();
  const timers = `${harness.prefix}:{default}/timers/node-pool`;
  const lastBegunMs = new Map<string, number>();
  let isEnding = false;
  workOn(queue, ({ id }) => {
    lastBegunMs.set(id, Date.now());
    const again = !isEnding && random() < 0.3;
    return again ? { kind: "requeueAfter", afterMs: random() * 300 } : { kind: "done" };
  });
  for (let round = 0; round < LIVES; round++) {
    isEnding = false;
    const scopes = randomScopes(random);
    for (let step = 0; step < 30; step++) {
      const key = keyOf(`k${Math.floor(random() * KEYS)}`);
      if (random() < 0.5) await queue.request(key, { kind: "watch" });
      else await queue.requestAt(key, Date.now() + random() * 400);
      const scope = scopes[step];
      if (scope !== undefined) await queue.control.pause(scope, ORDER);
    }
    await expectNothingLeft(harness, queue);
    isEnding = true;
    const promised = await harness.redis.zrange(timers, 0, "-1", "WITHSCORES");
    for (const { scope } of await queue.control.listPauses()) {
      await queue.control.resume(scope, ORDER);
    }
    for (const set of ["timers", "firing"]) {
      const name = `${harness.prefix}:{default}/${set}/node-pool`;
      await until(set, async () => (await harness.redis.exists(name)) === 0);
    }
    await expectNothingLeft(harness, queue);
    for (let at = 0; at < promised.length; at += 2) {
      const [id = "", dueMs] = [promised[at], Number(promised[at + 1])];
      expect(lastBegunMs.get(id), `${id} in round ${round}`).toBeGreaterThanOrEqual(dueMs);
    }
  }
});

/** Up to four pauses of the controller, its namespace and keys. */
const randomScopes = (random: () => number): PauseScope[] =>
  Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
    const choice = random();
    if (choice < 0.3) return { kind: "controller" };
    if (choice < 0.5) return { kind: "namespace", namespace: "demo" };
    return { kind: "key", key: keyOf(`k${Math.floor(random() * KEYS)}`) };
  });
