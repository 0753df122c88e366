import { expect, test } from "vitest";
import { isKonvergeError } from "@konverge/core";
import { defineWorkflow, type RunObserver, type Workflow } from "@konverge/workflow";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";
import { until } from "../../support/until.ts";

const harness = useWorkflows();
const start = { timeout: 600_000 };
const RUNS = 1_000;

/** Repeats a call that Redis does not answer in time: the workers of the test share its process. */
async function answered<T>(call: () => Promise<T>): Promise<T> {
  return await until("Redis answers", async () => {
    try {
      return { value: await call() };
    } catch (error) {
      if (isKonvergeError(error) && error.code === "redis_unavailable") return undefined;
      throw error;
    }
  }).then(({ value }) => value);
}

/** Two steps with a wait in between, so that a run has two executions. */
function versionOf(version: number, accepts: readonly number[] = []): Workflow<undefined> {
  return defineWorkflow<undefined, number[]>("roll", { version, accepts }, async (w) => {
    const by: number[] = [];
    for (const part of ["one", "two"]) {
      by.push(await w.step(part, async () => version));
      if (part === "one") await w.sleep("between", "5ms");
    }
    return by;
  });
}

/** Counts executions and runs that were handed back or blocked. */
function counter(): RunObserver & Record<"executions" | "blocked" | "returned", number> {
  return {
    executions: 0,
    blocked: 0,
    returned: 0,
    executionEnded(_workflow, { result }) {
      this.executions += 1;
      if (result === "blocked") this.blocked += 1;
    },
    recorded: () => undefined,
    handedBack() {
      this.returned += 1;
    },
    dropped: () => undefined,
  };
}

test(
  "no run is blocked while workers of two versions share the queue, and few are handed back",
  start,
  async () => {
    const runs = harness.openRuns();
    const [old, fresh] = [versionOf(1), versionOf(2)];
    const seen = counter();
    for (const workflow of [old, fresh]) {
      const workerId = `v${workflow.version}`;
      harness.openRuns().work({ workflows: [workflow], workerId, observer: seen });
    }
    const versionFor = (at: number) => (at % 2 === 0 ? old : fresh);
    const numbers = Array.from({ length: RUNS }, (_, at) => at).values();
    const starter = async () => {
      for (const at of numbers) {
        await answered(() => runs.start(versionFor(at), undefined, { id: `r${at}` }));
      }
    };
    await Promise.all(Array.from({ length: 8 }, starter));
    const allDone = async () => (await answered(() => runs.counts("roll"))).done === RUNS;
    await until("all runs end", allDone);
    for (let at = 0; at < RUNS; at += 97) {
      const { version } = versionFor(at);
      const run = await answered(() => runs.get({ workflow: "roll", id: `r${at}` }));
      expect(run).toMatchObject({ version, result: [version, version] });
    }
    expect(seen.blocked).toBe(0);
    // About one for each execution: a worker of the wrong version takes it as often as one of the right version.
    expect(seen.returned).toBeLessThan(10 * seen.executions);
  },
);

test(
  "a run that newer code has continued waits for newer code, not for older code",
  start,
  async () => {
    const runs = harness.openRuns();
    const make = (version: number, accepts: readonly number[]) =>
      defineWorkflow<undefined, number>("roll", { version, accepts }, async (w) => {
        await w.step("begin", async () => version);
        if (version === 2) await w.step("new step", async () => version);
        await w.signal("go");
        return await w.step("end", async () => version);
      });
    const [old, fresh] = [make(1, []), make(2, [1])];
    const ref = { workflow: "roll", id: "r" };
    const first = harness.openRuns().work({ workflows: [old], workerId: "old" });
    await runs.start(old, undefined, ref);
    await inStatus(runs, old, "r", "waiting");
    await first.stop();
    const second = harness.openRuns().work({ workflows: [fresh], workerId: "new" });
    await until("newer code has recorded a step", async () => {
      // Each end of a pause continues the run.
      await runs.pause(ref);
      await runs.resume(ref);
      return (await runs.steps(ref)).some(({ name }) => name === "new step");
    });
    await inStatus(runs, old, "r", "waiting");
    const seen = counter();
    harness.openRuns().work({ workflows: [old], workerId: "old again", observer: seen });
    await runs.signal(ref, "go");
    expect(await ended(runs, old, "r")).toMatchObject({ status: "done", version: 1, result: 2 });
    expect(seen.executions).toBe(0);
    await second.stop();
  },
);

test(
  "a run that no worker's code fits is blocked, and continues when such a worker starts",
  start,
  async () => {
    const runs = harness.openRuns();
    harness.openRuns().work({ workflows: [versionOf(1)], workerId: "old" });
    await runs.start(versionOf(2), undefined, { id: "r" });
    const { blockedReason } = await inStatus(runs, versionOf(2), "r", "blocked");
    expect(blockedReason).toContain("update this worker");
    harness.openRuns().work({ workflows: [versionOf(2)], workerId: "new" });
    expect(await ended(runs, versionOf(2), "r")).toMatchObject({
      status: "done",
      result: [2, 2],
    });
  },
);

test("a run that only a paused worker fits is blocked with its reason, and continues when the worker does", async () => {
  const runs = harness.openRuns();
  const [old, fresh] = [versionOf(1), versionOf(2)];
  const paused = runs.work({ workflows: [old], workerId: "v1" });
  await runs.start(old, undefined, { id: "warm-up" });
  await ended(runs, old, "warm-up");
  paused.pause();
  runs.work({ workflows: [fresh], workerId: "v2" });
  await runs.start(old, undefined, { id: "r" });
  const blocked = await inStatus(runs, old, "r", "blocked");
  expect(blocked.blockedReason).toContain('the run was started by version 1 of "roll"');
  paused.resume();
  expect(await ended(runs, old, "r")).toMatchObject({ status: "done", result: [1, 1] });
});
