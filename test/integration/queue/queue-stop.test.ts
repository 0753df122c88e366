import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { expectNothingLeft, keyOf, useQueues, workOn } from "./queue-harness.ts";

const harness = useQueues();

test("a stopped worker does not hold its process for the grace that it did not need", async () => {
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
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", "--input-type=module", "-e", script],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  // A process that is held runs into the test's own deadline.
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("workers that stop again and again between two jobs leave no key leased and no attempt lost", async () => {
  const queue = harness.open();
  const names = Array.from({ length: 200 }, (_, n) => `key-${n}`);
  await Promise.all(names.map((name) => queue.request(keyOf(name), { kind: "http" })));
  let done = 0;
  while (done < names.length) {
    const goal = Math.min(names.length, done + 1 + (done % 13));
    const enough = Promise.withResolvers<void>();
    // Told of an end, and so just when BullMQ hands out the next job.
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
}, 60_000);
