import { describe, expect, test } from "vitest";
import type { StartRunOptions } from "../define/define-workflow.ts";
import { defineWorkflow } from "../define/define-workflow.ts";
import { StepFailedError } from "../execution/step-failed-error.ts";
import type { TestWorkflowOptions } from "./test-run.ts";
import { testWorkflow } from "./test-workflow.ts";

const worker = defineWorkflow("worker", { version: 1 }, async (w, task: string) => {
  await w.signal("stop");
  return task;
});
type Start = StartRunOptions & { readonly task?: string };
const boss = defineWorkflow("boss", { version: 1 }, async (w, starts: readonly Start[]) => {
  const started: string[] = [];
  for (const [at, { task = "paint", ...options }] of starts.entries()) {
    try {
      const { workflow, id } = await w.start(`hire ${at}`, worker, task, options);
      started.push(`${workflow} ${id}`);
    } catch (error) {
      if (!(error instanceof StepFailedError)) throw error;
      started.push(error.failure.code);
    }
  }
  return started;
});
const begin = (starts: readonly Start[], options: TestWorkflowOptions = {}) =>
  testWorkflow(boss, starts, { children: [worker], ...options });

describe("w.start with a key", () => {
  test.each([
    { onExisting: undefined, second: "worker test.hire%200" },
    { onExisting: "attach" as const, second: "worker test.hire%200" },
    { onExisting: "reject" as const, second: "run_exists" },
    { onExisting: "queue" as const, second: "worker test.hire%201" },
    { onExisting: "supersede" as const, second: "worker test.hire%201" },
  ])(
    "and onExisting $onExisting has the result of a start by a client",
    async ({ onExisting, second: expected }) => {
      const second = onExisting === undefined ? { key: "k" } : { key: "k", onExisting };
      for (const replayEveryStep of [false, true]) {
        const t = begin([{ key: "k" }, second], { replayEveryStep });
        expect(await t.run()).toBeDefined();
        expect(await t.settle()).toMatchObject({ result: ["worker test.hire%200", expected] });
        const statusOf = async (step: string) => (await t.child(step).run()).status;
        const isSuperseded = onExisting === "supersede";
        expect(await statusOf("hire 0")).toBe(isSuperseded ? "cancelled" : "waiting");
        if (onExisting === "queue") {
          expect(await statusOf("hire 1")).toBe("queued");
          await t.child("hire 0").signal("stop");
        }
        if (expected.endsWith("1")) expect(await statusOf("hire 1")).toBe("waiting");
      }
    },
  );

  test("starts one run for each try of the call, also after a crash", async () => {
    const t = begin([{ key: "k", onExisting: "supersede" }]);
    t.crashAfter("hire 0");
    expect(await t.settle()).toMatchObject({ status: "done", result: ["worker test.hire%200"] });
    expect((await t.child("hire 0").run()).cancel).toBeUndefined();
  });
});

describe("w.start with an id", () => {
  test("returns the run with this id and the same input, and fails for another input", async () => {
    const t = begin([{ id: "w1" }, { id: "w1", key: "other" }, { id: "w1", task: "clean" }]);
    const result = ["worker w1", "worker w1", "input_mismatch"];
    expect(await t.settle()).toMatchObject({ status: "done", result });
  });

  test.each([
    [{ id: "a b" }, 'start "hire 0": id must have 1 to 500 characters'],
    [{ key: "" }, 'start "hire 0": key must have 1 to 500 characters'],
    [{ onExisting: "queue" as const }, 'start "hire 0": onExisting needs a key'],
    [
      { key: "k", onExisting: "wait" as never },
      "onExisting must be one of attach, reject, supersede, queue",
    ],
  ])("blocks a run whose code passes %j", async (options, reason) => {
    const run = await begin([options]).settle();
    expect(run).toMatchObject({ status: "blocked" });
    expect(run.blockedReason).toContain(reason);
  });
});
