import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import type { WorkflowChildConfig } from "./workflow-child.ts";
import { ended, useWorkflows } from "./workflow-harness.ts";
import { begunList, makeThreeSteps } from "./workflow-samples.ts";

const harness = useWorkflows();
const CHILD = fileURLToPath(new URL("workflow-child.ts", import.meta.url));
const LEASE_MS = 1_000;
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }
});

function startChild(how: Pick<WorkflowChildConfig, "dieIn" | "dieAfter">): ChildProcess {
  const { url, prefix } = harness;
  const config: WorkflowChildConfig = { url, prefix, leaseMs: LEASE_MS, ...how };
  const child = spawn(
    process.execPath,
    ["--conditions=@konverge/source", CHILD, JSON.stringify(config)],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  children.push(child);
  return child;
}

test.each([
  { how: { dieAfter: "one" }, begun: ["one", "two", "three"] },
  { how: { dieAfter: "two" }, begun: ["one", "two", "three"] },
  { how: { dieAfter: "three" }, begun: ["one", "two", "three"] },
  { how: { dieIn: "two" }, begun: ["one", "two", "two", "three"] },
])(
  "P9: kill -9 with $how: recorded steps keep their results and do not run again",
  async ({ how, begun }) => {
    const { redis, prefix } = harness;
    const workflows = harness.openRuns({ leaseMs: LEASE_MS });
    const workflow = makeThreeSteps(redis, prefix);
    const child = startChild(how);
    const { id } = await workflows.start(workflow, { start: 10 });
    const [, signal] = (await once(child, "exit")) as [number | null, string | null];
    expect(signal).toBe("SIGKILL");

    workflows.work({ workflows: [workflow], workerId: "second" });
    expect(await ended(workflows, workflow, id)).toMatchObject({ status: "done", result: 13 });
    expect(await redis.lrange(begunList(prefix), 0, -1)).toEqual(begun);
    // What the code saw before the crash is what it sees behind it.
    const steps = await workflows.steps({ workflow: workflow.name, id });
    expect(steps.map(({ name }) => name)).toEqual(["one", "two", "three"]);
    for (const { name, value } of steps) {
      const seen = await redis.lrange(`${prefix}:seen:${name}`, 0, -1);
      expect(new Set(seen)).toEqual(new Set([String(value)]));
    }
  },
);
