import { describe, expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import type { AnyWorkflow, ChildOptions, ParentClosePolicy } from "../define/define-workflow.ts";
import { defineWorkflow } from "../define/define-workflow.ts";
import { runExecution } from "../execution/run-execution.ts";
import { createChildStarter } from "../create-child-starter.ts";
import { createMemoryRunStore } from "./memory-run-store.ts";
import { testWorkflow } from "./test-workflow.ts";

const seen: string[] = [];
const NO_WAKE = { wake: async () => undefined, notify: async () => undefined };
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
    async (w, onParentClose: ParentClosePolicy) => {
      await Promise.race([
        w.child("copy", copy, { takes: "1h" }, { onParentClose }),
        w.signal("stop"),
      ]);
      return "stopped";
    },
  );
  for (const [policy, expected] of [
    ["cancel", ["copied", "copy undone"]],
    ["terminate", ["copied"]],
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

test.each(["failed", "cancelled", "lost race"] as const)(
  "a child with onParentClose terminate ends without its undo when its parent has %s",
  async (end) => {
    const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
      await w.step("prepare", () => void seen.push("prepared"), {
        undo: () => void seen.push("prepare undone"),
      });
      const copied = async () =>
        await w.child("copy", copy, { takes: "1h" }, { ...options, onParentClose: "terminate" });
      const stopped = async () => {
        await w.signal("stop");
        if (end === "failed") throw new TerminalError("stopped");
      };
      if (end === "lost race") await w.race({ copied, stopped });
      else await Promise.race([copied(), stopped()]);
    });
    seen.length = 0;
    const t = testWorkflow(parent, undefined, { children: [copy] });
    await t.settle();
    await (end === "cancelled" ? t.cancel() : t.signal("stop"));
    const undone = end === "lost race" ? [] : ["prepare undone"];
    expect(seen).toEqual(["prepared", "copied", ...undone]);
    expect(await t.child("copy").run()).toMatchObject({
      status: "cancelled",
      error: { code: "terminated" },
      terminated: { reason: expect.stringContaining("its parent test") as string },
    });
    const status = end === "lost race" ? "done" : end;
    expect(await t.run()).toMatchObject({ status });
  },
);

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

test("a run that was started without its parent becomes its child, and wakes it", async () => {
  const child = defineWorkflow("child", { version: 1 }, async (w) => {
    await w.sleep("work", "1h");
    return "worked";
  });
  let executions = 0;
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    executions += 1;
    if (executions > 1) return await w.child("kid", child, undefined);
    await w.start("kid", child, undefined);
    return "started";
  });
  const t = testWorkflow(parent, undefined, { children: [child] });
  // The run is started, and newer code continues without the record of that.
  t.crashIn("kid");
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect(await t.child("kid").run()).toMatchObject({ parent: { workflow: "parent", id: "test" } });
  expect(await t.advance("1h")).toMatchObject({ status: "done", result: "worked" });
});

test("a second cancellation reaches all children that have caught the first, once", async () => {
  const caught = new Set<string>();
  const leaf = defineWorkflow("leaf", { version: 1 }, async (w) => {
    for (const name of ["first", "second", "third"]) {
      await w.signal(name).catch(() => caught.add(`${name} of ${w.runId}`));
    }
  });
  const middle = defineWorkflow("middle", { version: 1 }, async (w) => {
    await w.child("leaf", leaf, undefined);
  });
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    const names = Array.from({ length: 30 }, (_, n) => `kid ${n}`);
    await Promise.all(names.map((name) => w.child(name, middle, undefined)));
  });
  const t = testWorkflow(parent, undefined, { children: [middle, leaf] });
  const timesOf = (name: string) => [...caught].filter((each) => each.startsWith(name)).length;
  await t.cancel();
  expect(["first", "second", "third"].map(timesOf)).toEqual([30, 0, 0]);
  await t.cancel();
  expect(["first", "second", "third"].map(timesOf)).toEqual([30, 30, 0]);
  expect(await t.cancel()).toMatchObject({ status: "done" });
  expect(["first", "second", "third"].map(timesOf)).toEqual([30, 30, 30]);
});

describe("with runs that are kept for a second", () => {
  const child = defineWorkflow("child", { version: 1 }, async () => "worked");
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    return await w.child("kid", child, undefined);
  });

  function open() {
    let nowMs = 0;
    let lease = 0;
    const store = createMemoryRunStore({ now: () => nowMs, retentionMs: 1_000 });
    const execute = async (workflow: AnyWorkflow, id: string) => {
      lease += 1;
      const held = await store.claim({ workflow: workflow.name, id }, { lease, owner: `${lease}` });
      if (held.kind !== "held") throw new Error(held.kind);
      return await runExecution({
        store,
        workflow,
        held,
        startChild: createChildStarter(store, NO_WAKE),
        stopped: new AbortController().signal,
        clock: () => 0,
        random: () => 0,
      });
    };
    return { store, execute, pass: (ms: number) => void (nowMs += ms) };
  }

  test("an ended child that is kept no longer does not run again: its parent is blocked", async () => {
    const { store, execute, pass } = open();
    await store.start({ workflow: "parent", id: "p", version: 1, input: null });
    expect(await execute(parent, "p")).toMatchObject({ kind: "waiting" });
    expect(await execute(child, "p.kid")).toMatchObject({ kind: "ended" });
    pass(1_000);
    const end = await execute(parent, "p");
    expect(end).toMatchObject({ kind: "blocked" });
    expect("reason" in end && end.reason).toContain('the child p.kid of "child" has ended');
    expect(await store.get({ workflow: "child", id: "p.kid" })).toBeUndefined();
    // An operator repeats the child.
    await store.start({ workflow: "child", id: "p.kid", version: 1, input: null });
    expect(await execute(parent, "p")).toMatchObject({ kind: "waiting" });
    await execute(child, "p.kid");
    expect(await execute(parent, "p")).toMatchObject({ kind: "ended", status: "done" });
  });

  test("a cancellation ends a run whose child is kept no longer", async () => {
    const { store, execute, pass } = open();
    await store.start({ workflow: "parent", id: "p", version: 1, input: null });
    await execute(parent, "p");
    await execute(child, "p.kid");
    pass(1_000);
    await store.cancel({ workflow: "parent", id: "p" }, {});
    expect(await execute(parent, "p")).toMatchObject({ kind: "ended", status: "cancelled" });
  });

  test("the child of another run is not taken over", async () => {
    const { store, execute } = open();
    const other = { workflow: "other", id: "p", step: "kid" };
    await store.start({ workflow: "child", id: "p.kid", version: 1, input: null, parent: other });
    await store.start({ workflow: "parent", id: "p", version: 1, input: null });
    const end = await execute(parent, "p");
    expect("reason" in end && end.reason).toContain('is a child of run p of "other"');
  });
});
