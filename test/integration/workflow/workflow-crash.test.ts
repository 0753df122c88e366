import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { WorkflowChildConfig } from "./workflow-child.ts";
import { defineWorkflow } from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import { begunList, makeThreeSteps, resumedList, seenList } from "./workflow-samples.ts";
import { useChildren, type Child } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const harness = useWorkflows();
const CHILD = fileURLToPath(new URL("workflow-child.ts", import.meta.url));
/** Of a worker that is killed or stopped. */
const LEASE_MS = 2_000;
/** Of its successor: on a busy machine, it must not lose its own lease. */
const LIVE_LEASE_MS = 6_000;
const start = useChildren();

function startChild(how: Pick<WorkflowChildConfig, "dieIn" | "dieAfter" | "haltIn">): Child {
  const { url, prefix } = harness;
  const config: WorkflowChildConfig = { url, prefix, leaseMs: LEASE_MS, ...how };
  return start([CHILD, JSON.stringify(config)]);
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
    const workflows = harness.openRuns({ leaseMs: LIVE_LEASE_MS });
    const workflow = makeThreeSteps(redis, prefix);
    const child = startChild(how);
    const { id } = await workflows.start(workflow, { start: 10 });
    const [, signal] = await child.exited;
    expect(signal).toBe("SIGKILL");

    workflows.work({ workflows: [workflow], workerId: "second" });
    expect(await ended(workflows, workflow, id)).toMatchObject({ status: "done", result: 13 });
    expect(await redis.lrange(begunList(prefix), 0, -1)).toEqual(begun);
    // The code sees the same results before and after the crash.
    const steps = await workflows.steps({ workflow: workflow.name, id });
    expect(steps.map(({ name }) => name)).toEqual(["one", "two", "three"]);
    for (const { name, value } of steps) {
      const seen = await redis.lrange(seenList(prefix, name), 0, -1);
      expect(new Set(seen)).toEqual(new Set([String(value)]));
    }
  },
);

test("P8: a worker that resumes after its lease has expired records nothing", async () => {
  const { redis, prefix } = harness;
  const workflows = harness.openRuns({ leaseMs: LIVE_LEASE_MS });
  const workflow = makeThreeSteps(redis, prefix);
  const child = startChild({ haltIn: "two" });
  const { id } = await workflows.start(workflow, { start: 0 });
  await until("the body has begun", async () => (await redis.llen(begunList(prefix))) === 2);
  workflows.work({ workflows: [workflow], workerId: "second" });
  const run = await ended(workflows, workflow, id);
  const steps = await workflows.steps({ workflow: workflow.name, id });
  expect(run).toMatchObject({ status: "done", result: 3 });

  child.process.kill("SIGCONT");
  await until("the body resumes", async () => (await redis.llen(resumedList(prefix))) === 1);
  child.process.kill("SIGTERM");
  expect(await child.exited).toEqual([0, null]);
  expect(await workflows.get({ workflow: workflow.name, id })).toEqual(run);
  expect(await workflows.steps({ workflow: workflow.name, id })).toEqual(steps);
  // The stopped function did not receive its own result either.
  const two = steps.find(({ name }) => name === "two")?.value;
  expect(await redis.lrange(seenList(prefix, "two"), 0, -1)).toEqual([String(two)]);
  expect(await redis.lrange(begunList(prefix), 0, -1)).toEqual(["one", "two", "two", "three"]);
});

test("G6: finds a start and a signal whose sender died before it requested the run", async () => {
  const { redis, prefix } = harness;
  const waiting = defineWorkflow("waiting", { version: 1 }, async (w) => await w.signal("go"));
  const store = createRedisRunStore({
    call: (run) => run(redis),
    prefix,
    cluster: "default",
    retentionMs: 60_000,
  });
  const ref = { workflow: "waiting", id: "r" };
  const { wakes } = runNames(prefix, "default", "waiting");
  /** Ends the grace. */
  const late = async () => await redis.zadd(wakes, 1, "r");
  await store.start({ ...ref, version: 1, input: undefined });
  await late();
  const workflows = harness.openRuns({ leaseMs: LIVE_LEASE_MS });
  workflows.work({ workflows: [waiting], workerId: "test" });
  await inStatus(workflows, waiting, "r", "waiting");
  await store.signal(ref, { name: "go", id: "1", payload: "went" });
  await late();
  expect(await ended(workflows, waiting, "r")).toMatchObject({ result: "went" });
});
