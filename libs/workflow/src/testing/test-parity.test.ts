import { TerminalError } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { defineWorkflow, type AnyWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const approval = defineWorkflow("approval", { version: 1 }, async (w, _input: unknown) => {
  const answer = await w.signal("approve");
  return JSON.stringify(answer);
});
const BIG = "x".repeat(10_000_000);

describe("refuses what production refuses", () => {
  test.each([
    { what: "a Date", value: { at: new Date(0) }, reason: "instance of Date" },
    { what: "a value over the limit", value: BIG, reason: "the limit is" },
    { what: "a function", value: () => 1, reason: "is a function" },
  ])("$what, as input and as payload", async ({ value, reason }) => {
    await expect(testWorkflow(approval, value).settle()).rejects.toThrow(reason);
    const t = testWorkflow(approval, undefined);
    await expect(t.signal("approve", value)).rejects.toThrow(reason);
    expect((await t.run()).status).toBe("waiting");
  });

  test("signals beyond the buffer of a run", async () => {
    const t = testWorkflow(approval, undefined);
    const send = async () => {
      for (let count = 0; count <= 1_000; count += 1) await t.signal("other", count);
    };
    await expect(send()).rejects.toMatchObject({ code: "signals_full" });
    expect(await t.signal("approve", "yes").catch((error: Error) => error)).toMatchObject({
      code: "signals_full",
    });
  });

  test("a signal to a run that has ended", async () => {
    const t = testWorkflow(approval, undefined);
    await t.signal("approve");
    await expect(t.signal("approve")).rejects.toMatchObject({ code: "run_ended" });
    await expect(t.cancel()).rejects.toMatchObject({ code: "run_ended" });
  });
});

describe("children", () => {
  const middle = defineWorkflow("middle", { version: 1 }, async (w) => {
    return await w.child("ask inside", approval, null);
  });
  const root = defineWorkflow("root", { version: 1 }, async (w) => {
    const direct = await w.child("ask", approval, null);
    return `${direct} ${await w.child("go deeper", middle, undefined)}`;
  });
  const start = () => testWorkflow(root, undefined, { children: [approval, middle] });

  test("receive signals, at any depth", async () => {
    const t = start();
    const ask = t.child("ask");
    expect((await ask.run()).waits).toMatchObject([{ step: "approve", kind: "signal" }]);
    expect(await ask.signal("approve", "a")).toMatchObject({ status: "done", result: '"a"' });
    expect((await ask.steps()).get("approve")?.value).toBe("a");
    const inside = t.child("go deeper").child("ask inside");
    await inside.signal("approve", "b");
    expect(await t.run()).toMatchObject({ status: "done", result: '"a" "b"' });
  });

  test("are cancelled on their own, which fails the step of the parent", async () => {
    const t = start();
    expect((await t.child("ask").cancel()).status).toBe("cancelled");
    expect(await t.run()).toMatchObject({ status: "failed" });
  });

  test("are named by an error if they were not started", async () => {
    await expect(start().child("go deeper").run()).rejects.toThrow(
      'run test of "root" has not started a child "go deeper"',
    );
  });
});

describe("deploy", () => {
  const bodies: string[] = [];
  const code = (version: number, steps: readonly string[], more: object = {}) =>
    defineWorkflow("rollout", { version, ...more }, async (w) => {
      for (const step of steps) await w.step(step, () => void bodies.push(step));
      await w.signal("go");
      await w.step("finish", () => void bodies.push(`finish ${version}`));
    });

  test("continues the run with the new code, on the same records", async () => {
    bodies.length = 0;
    const t = testWorkflow(code(1, ["a"]), undefined);
    await t.settle();
    t.deploy(code(2, ["a"], { accepts: [1] }));
    expect((await t.signal("go")).status).toBe("done");
    expect(bodies).toEqual(["a", "finish 2"]);
  });

  test("blocks a run that the code does not accept, until a later one does", async () => {
    const t = testWorkflow(code(1, ["a"]), undefined);
    await t.settle();
    t.deploy(code(2, ["a"]));
    expect(await t.signal("go")).toMatchObject({ status: "blocked" });
    t.deploy(code(3, ["a"], { accepts: [1] }));
    expect((await t.advance("1m")).status).toBe("done");
  });

  test("replaces the code of a child", async () => {
    const child = (text: string): AnyWorkflow =>
      defineWorkflow("child", { version: 1 }, async (w) => {
        await w.signal("go");
        return text;
      });
    const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
      return (await w.child("ask", child("old") as never, undefined)) as string;
    });
    const t = testWorkflow(parent, undefined, { children: [child("old")] });
    await t.settle();
    t.deploy(child("new"));
    await t.child("ask").signal("go");
    expect(await t.run()).toMatchObject({ status: "done", result: "new" });
  });

  test("rejects a workflow that the test does not have", () => {
    const other = defineWorkflow("other", { version: 1 }, async () => undefined);
    const t = testWorkflow(code(1, []), undefined);
    expect(() => t.deploy(other)).toThrow("its workflows: rollout");
  });
});

describe("retry", () => {
  /** Fails at step b until `works`. */
  const flaky = (state: { works: boolean }) => {
    const undone: string[] = [];
    const workflow = (undoes: boolean) =>
      defineWorkflow("flaky", { version: 1 }, async (w, input: string) => {
        const undo = () => void undone.push("a");
        await w.step("a", () => 1, undoes ? { undo } : {});
        await w.step("b", () => {
          if (!state.works) throw new TerminalError("no quota");
        });
        return `${w.runId} ${input}`;
      });
    return { undone, workflow };
  };

  test("continues the same run after its successful steps", async () => {
    const state = { works: false };
    const t = testWorkflow(flaky(state).workflow(false), "in");
    expect(await t.settle()).toMatchObject({ status: "failed" });
    state.works = true;
    expect(await t.retry({ fromFailed: true })).toMatchObject({
      status: "done",
      result: "test in",
    });
    expect(t.bodies).toEqual(["a", "b", "b"]);
  });

  test("starts a new run with the same input, which the calls then concern", async () => {
    const state = { works: false };
    const { workflow, undone } = flaky(state);
    const t = testWorkflow(workflow(true), "in");
    await t.settle();
    expect(undone).toEqual(["a"]);
    await expect(t.retry({ fromFailed: true })).rejects.toMatchObject({ code: "run_compensated" });
    state.works = true;
    expect(await t.retry()).toMatchObject({ id: "test~2", status: "done", result: "test~2 in" });
    expect([...(await t.steps()).keys()]).toEqual(["a", "b"]);
    await expect(t.retry()).rejects.toMatchObject({ code: "run_ended" });
  });

  test("skips an undo that cannot succeed", async () => {
    const workflow = defineWorkflow("stuck", { version: 1 }, async (w) => {
      await w.step("a", () => 1, {
        retry: { attempts: 1 },
        undo: () => {
          throw new TypeError("cannot undo");
        },
      });
      throw new TerminalError("no");
    });
    const t = testWorkflow(workflow, undefined);
    expect(await t.settle()).toMatchObject({ status: "blocked" });
    expect(await t.retry()).toMatchObject({ status: "blocked" });
    expect(t.bodies.filter((body) => body === "undo:a")).toHaveLength(2);
    expect(await t.retry({ skipUndo: "a" })).toMatchObject({ status: "failed" });
  });

  test("repeats the last round of a run that has continued", async () => {
    const state = { works: false };
    const workflow = defineWorkflow(
      "rounds",
      { version: 1 },
      async (w, n: number): Promise<string> => {
        if (n < 3) return await w.continueWith(n + 1);
        await w.step("a", () => {
          if (!state.works) throw new TerminalError("no");
        });
        return `${w.runId} ${n} ${w.round}`;
      },
    );
    const t = testWorkflow(workflow, 1);
    expect(await t.settle()).toMatchObject({ status: "failed", round: 3 });
    state.works = true;
    expect(await t.retry({ fromFailed: true })).toMatchObject({ result: "test 3 3" });
    const again = testWorkflow(workflow, 1);
    state.works = false;
    await again.settle();
    state.works = true;
    expect(await again.retry()).toMatchObject({ result: "test~2 3 1" });
  });
});

describe("runs with one key", () => {
  const start = () => testWorkflow(approval, "first", { key: "k" });

  test("attach, or are rejected", async () => {
    const t = start();
    expect(await (await t.startOther("second")).run()).toMatchObject({ id: "test" });
    await expect(t.startOther("second", { onExisting: "reject" })).rejects.toMatchObject({
      code: "run_exists",
    });
  });

  test("supersede the active run, which is cancelled first", async () => {
    const t = start();
    const second = await t.startOther("second", { onExisting: "supersede" });
    expect(await t.run()).toMatchObject({
      status: "cancelled",
      cancel: { reason: "superseded by other-1" },
    });
    expect(await second.run()).toMatchObject({ status: "waiting", input: "second" });
    expect(await second.signal("approve", 2)).toMatchObject({ status: "done", result: "2" });
  });

  test("wait for the run before", async () => {
    const t = start();
    const second = await t.startOther("second", { onExisting: "queue" });
    expect(await second.run()).toMatchObject({ status: "queued" });
    await t.signal("approve", 1);
    expect(await second.run()).toMatchObject({ status: "waiting" });
  });

  test("need a key", async () => {
    await expect(testWorkflow(approval, undefined).startOther(1)).rejects.toThrow("pass key");
  });
});
