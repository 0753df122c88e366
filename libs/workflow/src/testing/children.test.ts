import { expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import type { ChildOptions } from "../define/define-workflow.ts";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const seen: string[] = [];
const copy = defineWorkflow("copy", { version: 1 }, async (w, input: { takes: "0s" | "1h" }) => {
  await w.step("copy", () => void seen.push("copied"), {
    undo: () => void seen.push("copy undone"),
  });
  await w.sleep("settle", input.takes);
  return "a copy";
});
const options: ChildOptions<string> = {
  undo: (result) => void seen.push(`${result} deleted`),
};
const begin = (...args: Parameters<typeof testWorkflow<{ takes: "0s" | "1h" }>>) => {
  seen.length = 0;
  const [workflow, input, more = {}] = args;
  return testWorkflow(workflow, input, { children: [copy], ...more });
};

test.each([false, true])(
  "a done child is undone in order with the steps, replaying every step %s",
  async (replayEveryStep) => {
    const moved = defineWorkflow("moved", { version: 1 }, async (w, input: { takes: "0s" }) => {
      await w.step("a", () => 1, { undo: () => void seen.push("a undone") });
      await w.child("copy", copy, input, options);
      await w.step("b", () => 1, { undo: () => void seen.push("b undone") });
      throw new TerminalError("no");
    });
    const t = begin(moved as never, { takes: "0s" }, { replayEveryStep });
    expect(await t.settle()).toMatchObject({ status: "failed" });
    expect(seen).toEqual(["copied", "b undone", "a copy deleted", "a undone"]);
    expect((await t.steps()).get("undo:copy")).toMatchObject({ kind: "undo" });
  },
);

test.each([undefined, "undo:copy", "create"])(
  "a failed run cancels a child beside it, and undoes its steps after the end of the child, with a crash after %s",
  async (crash) => {
    const moved = defineWorkflow("moved", { version: 1 }, async (w, input: { takes: "1h" }) => {
      await w.step("create", () => 1, { undo: () => void seen.push("deleted") });
      await Promise.all([
        w.child("copy", copy, input, options),
        w.signal("fail").then(() => {
          throw new TerminalError("no");
        }),
      ]);
    });
    const t = begin(moved as never, { takes: "1h" });
    if (crash === "create") t.crashAfter(crash);
    await t.settle();
    expect(await t.signal("fail")).toMatchObject({ status: "failed", error: { message: "no" } });
    expect(seen).toEqual(["copied", "copy undone", "deleted"]);
  },
);

test("a child that is not awaited any more ends with its parent, unless it is abandoned", async () => {
  const raced = defineWorkflow(
    "raced",
    { version: 1 },
    async (w, onParentClose: "cancel" | "abandon") => {
      await Promise.race([
        w.child("copy", copy, { takes: "1h" }, { onParentClose }),
        w.signal("stop"),
      ]);
      return "stopped";
    },
  );
  for (const [policy, expected] of [
    ["cancel", ["copied", "copy undone"]],
    ["abandon", ["copied"]],
  ] as const) {
    seen.length = 0;
    const t = testWorkflow(raced, policy, { children: [copy] });
    await t.settle();
    expect(await t.signal("stop")).toMatchObject({ status: "done", result: "stopped" });
    await t.settle();
    expect(seen).toEqual(expected);
  }
});

test("the cancellation of a run leaves an abandoned child running", async () => {
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    await w.child("copy", copy, { takes: "1h" }, { onParentClose: "abandon" });
  });
  seen.length = 0;
  const t = testWorkflow(parent, undefined, { children: [copy] });
  await t.settle();
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  expect(seen).toEqual(["copied"]);
});

test.each([false, true])(
  "a started run goes its own way, and both send each other signals, replaying every step %s",
  async (replayEveryStep) => {
    const worker = defineWorkflow("worker", { version: 1 }, async (w, input: { boss: string }) => {
      const task = await w.signal<string>("task");
      await w.signalRun("report", { workflow: "boss", id: input.boss }, "report", `${task} done`);
    });
    const boss = defineWorkflow("boss", { version: 1 }, async (w) => {
      const run = await w.start("hire", worker, { boss: w.runId });
      await w.signalRun("assign", run, "task", "paint");
      const report = await w.signal<string>("report");
      await w.sleep("later", "1m");
      const code = await w.signalRun("again", run, "task").then(
        () => "sent",
        (error: { code?: string; failure?: { code: string } }) => error.failure?.code ?? error.code,
      );
      return { run, report, code };
    });
    const t = testWorkflow(boss, undefined, { children: [worker], replayEveryStep });
    expect(await t.advance("1m")).toMatchObject({
      status: "done",
      result: {
        run: { workflow: "worker", id: "test.hire" },
        report: "paint done",
        code: "run_ended",
      },
    });
    await t.replay();
  },
);
