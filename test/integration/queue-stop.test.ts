import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { useQueues } from "./queue-harness.ts";

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
