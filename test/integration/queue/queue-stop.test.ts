import { expect, test } from "vitest";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
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

const harness = useQueues();
const startChild = useChildren();

test("a stopped worker does not keep its process alive for unused grace time", async () => {
  const script = `
    const { createWorkQueue } = await import(${JSON.stringify(import.meta.resolve("@konverge/queue"))});
    const queue = createWorkQueue({
      redis: { url: ${JSON.stringify(harness.url)} },
      prefix: ${JSON.stringify(harness.prefix)},
      cluster: "default",
      controller: "node-pool",
    });
    const worker = queue.work({ workerId: "a", handle: async () => ({ outcome: { kind: "done" } }), onError: () => {} });
    await worker.stop({ graceMs: 3_600_000 });
    await queue.close();`;
  const child = startChild(["--input-type=module", "-e", script]);
  // A process that stays alive hits the deadline of the test.
  expect(await child.exited).toEqual([0, null]);
});

test("workers that stop repeatedly between two jobs leave no leased key and lose no attempt", async () => {
  const queue = harness.open();
  const names = Array.from({ length: 200 }, (_, n) => `key-${n}`);
  await Promise.all(names.map((name) => queue.request(keyOf(name), { kind: "http" })));
  let done = 0;
  while (done < names.length) {
    const goal = Math.min(names.length, done + 1 + (done % 13));
    const enough = Promise.withResolvers<void>();
    // Called at the end of an attempt, just when BullMQ returns the next job.
    const onClosed = () => {
      done += 1;
      if (done >= goal) enough.resolve();
    };
    const worker = workOn(queue, () => ({ kind: "done" }), { concurrency: 1, onClosed });
    await enough.promise;
    await worker.stop();
  }
  const attempts = await Promise.all(names.map((name) => queue.listAttempts(keyOf(name))));
  expect(new Set(attempts.flat().map(({ outcome }) => outcome)).has("lost")).toBe(false);
  await expectNothingLeft(harness, queue);
  const states = await Promise.all(names.map((name) => queue.getKey(keyOf(name))));
  expect(states.filter((state) => state?.phase !== "idle")).toEqual([]);
});

test("jobs that a stopping worker puts back leave a marker, so that they wake an idle worker at once", async () => {
  const queue = harness.open();
  const marker = `${queueNames(harness.prefix, CLUSTER, CONTROLLER).bullRoot}marker`;
  const worker = workOn(
    queue,
    ({ signal }) =>
      new Promise((resolve) => {
        const cancelled = { kind: "cancelled", cause: "shutdown" } as const;
        signal.addEventListener("abort", () => resolve(cancelled));
      }),
  );
  await queue.request(keyOf("a"), { kind: "http" });
  // A job is active before its handler, which would not see an abort that came first.
  await until("its handler runs", () => worker.started.length === 1);
  await worker.stop({ graceMs: 0 });
  expect((await queue.counts()).waiting).toBe(1);
  expect(await harness.redis.zrange(marker, "0", "-1")).toEqual(["0"]);
});
