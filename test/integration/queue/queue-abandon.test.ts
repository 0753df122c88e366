import { expect, test } from "vitest";
import type { Outcome } from "@konverge/core";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import {
  CLUSTER,
  CONTROLLER,
  expectNothingLeft,
  hold,
  keyOf,
  useQueues,
  workOn,
} from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const done: Outcome = { kind: "done" };
const http = { kind: "http" } as const;
/** No test waits for it. */
const LEASE_MS = 600_000;

test.each([1, 2])(
  "an abandoned attempt runs at once on another worker, and its own end is fenced (%s shards)",
  async (shards) => {
    const queue = harness.open({ leaseMs: LEASE_MS, shards });
    const held = hold();
    let starts = 0;
    const first = workOn(queue, async () => {
      starts += 1;
      if (starts === 1) await held.wait();
      return done;
    });
    const { id } = await queue.request(keyOf("a"), { ...http, reason: "first" });
    const [attempt] = await until("it begins", () => first.started.length === 1 && first.started);
    await queue.request(keyOf("a"), { ...http, reason: "second" });
    const epoch = attempt?.epoch ?? 0;
    expect(await queue.abandon(keyOf("a"), epoch - 1)).toBe(false);
    expect(await queue.abandon(keyOf("b"), epoch)).toBe(false);
    expect(await queue.abandon(keyOf("a"), epoch)).toBe(true);
    await until("the next attempt begins", () => first.started.length === 2);
    expect(first.started[1]).toMatchObject({ epoch: epoch + 1, failures: 1 });
    await until("the next attempt ends", async () => {
      const state = await queue.getRequest(id);
      return state.phase === "finished";
    });
    // The next attempt has ended, too.
    expect(await queue.abandon(keyOf("a"), epoch)).toBe(false);
    expect(await queue.abandon(keyOf("a"), epoch + 1)).toBe(false);
    held.release();
    await until("the first attempt ends", () => first.closed.length === 2);
    expect(first.closed.map(({ fenced }) => fenced).toSorted()).toEqual([false, true]);
    expect((await queue.listAttempts(keyOf("a"))).map(({ outcome }) => outcome)).toEqual([
      "done",
      "lost",
    ]);
    await expectNothingLeft(harness, queue);
  },
);

test("an abandoned job has the state of one that BullMQ returns after a stall", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  const held = hold();
  // Its only slot is taken, so nothing takes the job.
  const worker = workOn(
    queue,
    async () => {
      await held.wait();
      return done;
    },
    { concurrency: 1 },
  );
  await queue.request(keyOf("a"), http);
  const [attempt] = await until("it begins", () => worker.started.length === 1 && worker.started);
  const { bullRoot } = queueNames(harness.prefix, CLUSTER, CONTROLLER);
  const { redis } = harness;
  const [job = ""] = await redis.lrange(`${bullRoot}active`, 0, -1);
  await queue.abandon(keyOf("a"), attempt?.epoch ?? 0);
  expect(await redis.lrange(`${bullRoot}active`, 0, -1)).toEqual([]);
  expect(await redis.lrange(`${bullRoot}wait`, 0, -1)).toEqual([job]);
  expect(await redis.exists(`${bullRoot}${job}:lock`)).toBe(0);
  expect(await redis.hget(`${bullRoot}${job}`, "stc")).toBe("1");
  expect(await redis.zrange(`${bullRoot}marker`, "0", "-1")).toEqual(["0"]);
  held.release();
  // Nothing has taken the key meanwhile, so this end counts.
  await until("the attempt ends", () => worker.closed.length === 1);
  expect(worker.closed).toMatchObject([{ outcome: "done", fenced: false }]);
  await expectNothingLeft(harness, queue);
});
