import { TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, type StepContext } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

/** A long copy beside an abort button and a deadline. */
const copying = defineWorkflow("copying", { version: 1 }, async (w) => {
  const first = await w.race({
    copy: () => w.step("copy", async () => 3),
    abort: () => w.signal<string>("abort"),
    deadline: () => w.sleep("deadline", "1h"),
  });
  await w.step("react", async () => undefined);
  await w.sleep("soak", "2h");
  switch (first.branch) {
    case "copy":
      return first.value + 1;
    case "abort":
      return first.value.toUpperCase();
    case "deadline":
      return "late";
  }
});

test.each([{ replayEveryStep: false }, { replayEveryStep: true }])(
  "the branch that returns first gives the outcome, with %o",
  async (mode) => {
    const t = testWorkflow(copying, undefined, mode);
    expect(await t.advance("3h")).toMatchObject({ status: "done", result: 4 });
    const record = (await t.steps()).get("copy | abort | deadline");
    expect(record).toMatchObject({ kind: "race", branch: "copy", value: 3 });
    expect((await t.steps()).has("abort")).toBe(false);
    await t.replay();
  },
);

test.each([
  { event: "signal", branch: "abort", result: "NOW" },
  { event: "time", branch: "deadline", result: "late" },
])("$event aborts the body of a losing branch", async ({ event, branch, result }) => {
  const t = testWorkflow(copying, undefined);
  t.holdStep("copy");
  await t.settle();
  if (event === "signal") await t.signal("abort", "now");
  else await t.advance("1h");
  expect(t.bodies).toEqual(["copy", "react"]);
  const steps = await t.steps();
  expect(steps.get("copy | abort | deadline")).toMatchObject({ branch, lost: ["copy"] });
  expect(steps.get("copy")).toMatchObject({ error: { code: "race_lost" }, attempts: 1 });
  expect(await t.run()).toMatchObject({ status: "waiting", waits: [{ step: "soak" }] });
  expect(await t.advance("3h")).toMatchObject({ status: "done", result });
  await t.replay();
});

test("a body that ignores its signal does not hold the run, and its late result is not recorded", async () => {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const program = defineWorkflow("deaf", { version: 1 }, async (w) => {
    const { branch } = await w.race({
      copy: () =>
        w.step("copy", async ({ signal }) => {
          signals.push(signal);
          await late;
          return "late";
        }),
      quick: () => w.step("quick", async () => undefined),
    });
    await w.step("react", async () => undefined);
    await w.signal("end");
    return branch;
  });
  const t = testWorkflow(program, undefined);
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  resolve();
  expect(await t.signal("end")).toMatchObject({ status: "done", result: "quick" });
  expect((await t.steps()).get("copy")).toMatchObject({ error: { code: "race_lost" } });
  expect((await t.steps()).get("copy")).not.toHaveProperty("value");
  await t.replay();
});

test("a signal that a losing branch awaited stays unconsumed, and its name may be used again", async () => {
  const program = defineWorkflow("inbox", { version: 1 }, async (w) => {
    const seen: unknown[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const first = await w.race({
        message: () => w.signal("message"),
        tick: () => w.sleep("tick", "1m"),
      });
      seen.push(first.branch === "message" ? first.value : "tick");
    }
    return seen;
  });
  const t = testWorkflow(program, undefined);
  await t.advance("1m");
  await t.signal("message", "a");
  const waits = (await t.run()).waits ?? [];
  expect(waits.map(({ step }) => step).toSorted()).toEqual(["message#3", "tick#3"]);
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: ["tick", "a", "tick"] });
  await t.replay();
});

test("a failed branch fails the race with its error, in every execution", async () => {
  const errors: string[] = [];
  const program = defineWorkflow("failing", { version: 1 }, async (w) => {
    const note = (error: Error) => void errors.push(`${error.name}: ${error.message}`);
    const step = async (k: StepContext) => {
      await new Promise((_, reject) => k.signal.addEventListener("abort", reject));
    };
    await w
      .race({
        bad: () =>
          w.step("bad", async () => {
            throw new TerminalError("broken");
          }),
        long: () => w.step("long", step),
      })
      .catch(note);
    await w
      .race(
        {
          refused: async () => {
            await w.now();
            throw new TerminalError("not approved");
          },
          other: () => w.signal("other"),
        },
        { name: "approval" },
      )
      .catch(note);
    await w.sleep("pause", "1m");
    return errors.slice(-2);
  });
  const t = testWorkflow(program, undefined);
  const result = ['StepFailedError: step "bad" failed: broken', "TerminalError: not approved"];
  expect(await t.advance("1m")).toMatchObject({ status: "done", result });
  expect(errors).toEqual([...result, ...result]);
  await t.replay();
});

test.each(["now", "later"])("a failure %s undoes the steps of losing branches", async (when) => {
  const undone: string[] = [];
  const undo = (name: string) => ({ undo: () => void undone.push(name) });
  const program = defineWorkflow("undone", { version: 1 }, async (w) => {
    await w.step("before", async () => undefined, undo("before"));
    await w.race({
      copy: async () => {
        await w.step("prepare", async () => undefined, undo("prepare"));
        await w.step("copy", async () => undefined, undo("copy"));
        await w.step("never", async () => undefined, undo("never"));
      },
      retrying: () =>
        w.step(
          "retrying",
          async () => {
            throw new Error("not yet");
          },
          { ...undo("retrying"), retry: { delay: "1h" } },
        ),
      abort: () => w.signal("abort"),
    });
    if (when === "later") {
      await w.step("after", async () => undefined, undo("after"));
      await w.sleep("pause", "2h");
    }
    throw new TerminalError("as planned");
  });
  const t = testWorkflow(program, undefined);
  t.holdStep("copy");
  await t.settle();
  await t.signal("abort");
  expect(await t.advance("2h")).toMatchObject({ status: "failed" });
  const inOrder = when === "later" ? ["after"] : [];
  expect(
    undone.filter((name) => name === "after" || name === "prepare" || name === "before"),
  ).toEqual([...inOrder, "prepare", "before"]);
  expect(undone.toSorted()).toEqual(
    [...inOrder, "before", "copy", "prepare", "retrying"].toSorted(),
  );
});

test("a crash between the record of a race and the end of its branches changes nothing", async () => {
  const undone: string[] = [];
  const program = defineWorkflow("crashing", { version: 1 }, async (w) => {
    const { branch } = await w.race(
      {
        copy: () => w.step("copy", async () => 1, { undo: () => void undone.push("copy") }),
        abort: () => w.signal("abort"),
      },
      { name: "race" },
    );
    await w.sleep("pause", "1h");
    throw new TerminalError(branch);
  });
  const t = testWorkflow(program, undefined);
  t.holdStep("copy");
  t.crashAfter("race");
  await t.settle();
  await t.signal("abort");
  expect((await t.steps()).get("copy")).toMatchObject({ error: { code: "race_lost" } });
  expect(t.bodies).toEqual(["copy"]);
  expect(await t.advance("1h")).toMatchObject({ status: "failed", error: { message: "abort" } });
  expect(undone).toEqual(["copy"]);
});

test("a child in a losing branch is cancelled, an abandoned one continues", async () => {
  const child = defineWorkflow("child", { version: 1 }, async (w) => {
    await w.sleep("long", "1h");
    return "child";
  });
  const program = defineWorkflow("parent", { version: 1 }, async (w) => {
    const { branch } = await w.race({
      child: () => w.child("deploy", child, undefined),
      kept: () => w.child("kept", child, undefined, { onParentClose: "abandon" }),
      abort: () => w.signal("abort"),
    });
    await w.sleep("pause", "2h");
    return branch;
  });
  const t = testWorkflow(program, undefined, { children: [child] });
  await t.settle();
  expect(await t.signal("abort")).toMatchObject({ status: "waiting", waits: [{ step: "pause" }] });
  expect(await t.child("deploy").run()).toMatchObject({ status: "cancelled" });
  expect(await t.advance("2h")).toMatchObject({ status: "done", result: "abort" });
  expect(await t.child("kept").run()).toMatchObject({ status: "done" });
  await t.replay();
});

test("races may be nested, and run in w.map", async () => {
  const program = defineWorkflow("nested", { version: 1 }, async (w) => {
    const outcomes = await w.map(["a", "b"], async (host) => {
      const outer = await w.race({
        work: async () => {
          const inner = await w.race({
            copy: () => w.step(`copy ${host}`, async () => host),
            slow: () => w.sleep(`slow ${host}`, "1h"),
          });
          await w.step(`after ${host}`, async () => undefined);
          return inner.branch;
        },
        stop: () => w.signal(`stop ${host}`),
      });
      return [outer.branch, outer.value];
    });
    return outcomes.map((each) => each.status === "fulfilled" && each.value);
  });
  const t = testWorkflow(program, undefined);
  t.holdStep("copy a");
  t.holdStep("copy b");
  await t.settle();
  await t.signal("stop a", "stopped");
  expect((await t.steps()).get("copy a")).toMatchObject({ error: { code: "race_lost" } });
  const result = [
    ["stop", "stopped"],
    ["work", "copy"],
  ];
  expect(await t.releaseStep("copy b")).toMatchObject({ status: "done", result });
  await t.replay();
});

test("a cancellation reaches all branches, and the race throws it", async () => {
  const log: string[] = [];
  const program = defineWorkflow("cancelled", { version: 1 }, async (w) => {
    const clean = async (name: string, error: unknown): Promise<never> => {
      log.push(name);
      throw error;
    };
    try {
      await w.race({
        copy: () => w.step("copy", async () => 1).catch((error) => clean("copy", error)),
        abort: () => w.signal("abort").catch((error) => clean("abort", error)),
      });
    } finally {
      await w.step("clean up", async () => void log.push("clean up"));
      await w.race({
        one: () => w.step("one", async () => void log.push("one")),
        never: () => w.signal("never"),
      });
    }
  });
  const t = testWorkflow(program, undefined);
  t.holdStep("copy");
  await t.settle();
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  expect([...new Set(log)].toSorted()).toEqual(["abort", "clean up", "copy", "one"]);
});

test("a mistake in the code of a branch blocks the run, and corrected code continues it", async () => {
  const program = (isFixed: boolean) =>
    defineWorkflow("mistake", { version: 1 }, async (w) => {
      const { branch } = await w.race({
        one: async () => {
          await w.step("one", async () => undefined);
          if (!isFixed) throw new TypeError("not a function");
        },
        two: () => w.signal("two"),
      });
      return branch;
    });
  const t = testWorkflow(program(false), undefined);
  expect(await t.settle()).toMatchObject({
    status: "blocked",
    blockedError: { code: "TypeError" },
  });
  t.deploy(program(true));
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: "one" });
});

test("code without the branch that was first blocks the run", async () => {
  const program = (branch: string) =>
    defineWorkflow("renamed", { version: 1 }, async (w) => {
      await w.race({ [branch]: () => w.now("now") }, { name: "race" });
      await w.signal("end");
    });
  const t = testWorkflow(program("one"), undefined);
  await t.settle();
  t.deploy(program("two"));
  await t.signal("end");
  expect(await t.run()).toMatchObject({ status: "blocked" });
  expect((await t.run()).blockedReason).toContain('branch "one" was first in the race "race"');
  t.deploy(program("one"));
  expect(await t.advance("1m")).toMatchObject({ status: "done" });
});

test("rejects a race without branches, and values that are not JSON", async () => {
  const none = defineWorkflow("none", { version: 1 }, async (w) => void (await w.race({})));
  expect((await testWorkflow(none, undefined).settle()).blockedReason).toContain(
    "w.race needs at least one branch",
  );
  const date = defineWorkflow("date", { version: 1 }, async (w) => {
    // @ts-expect-error: a Date is not JSON
    await w.race({ date: async () => new Date() });
  });
  expect((await testWorkflow(date, undefined).settle()).blockedReason).toContain(
    'value of "date" cannot be recorded',
  );
});
