import { describe, expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { z } from "zod";
import { defineWorkflow, type AnyWorkflow } from "../define/define-workflow.ts";
import { replay } from "./replay.ts";
import { testWorkflow } from "./test-workflow.ts";

interface Count {
  readonly n: number;
}

/** Counts its rounds up to 5. */
function counting(version = 1, accepts: readonly number[] = []) {
  return defineWorkflow("count", { version, accepts }, async (w, { n }: Count): Promise<string> => {
    const seen = await w.step("add", async () => n + 1);
    if (seen < 5) return await w.continueWith({ n: seen });
    return `${seen} in round ${w.round} by version ${w.version}`;
  });
}

describe.each([false, true])("with replayEveryStep %s", (replayEveryStep) => {
  test("begins again with another input and without records", async () => {
    const t = testWorkflow(counting(), { n: 0 }, { replayEveryStep });
    expect(await t.settle()).toMatchObject({
      status: "done",
      result: "5 in round 5 by version 1",
      round: 5,
      input: { n: 4 },
      firstInput: { n: 0 },
    });
    expect([...(await t.steps()).keys()]).toEqual(["add"]);
    expect(t.bodies).toHaveLength(5);
    await t.replay();
    await replay(await t.history(), counting());
  });

  test("keeps published values, labels and signals that the round has not consumed", async () => {
    const sum = defineWorkflow("sum", { version: 1 }, async (w, total: number): Promise<number> => {
      const add = await w.signal<number>("add");
      w.set("total", total + add);
      w.label("last", String(add));
      return add === 0 ? total : await w.continueWith(total + add);
    });
    const t = testWorkflow(sum, 0, { replayEveryStep });
    for (const n of [1, 2, 3]) await t.signal("add", n);
    expect(await t.run()).toMatchObject({
      published: { total: 6 },
      labels: { last: "3" },
      round: 4,
    });
    expect(await t.signal("add", 0)).toMatchObject({ status: "done", result: 6 });
  });

  test("gives each round its own ids, keys and children", async () => {
    const seen: string[] = [];
    const child = defineWorkflow("child", { version: 1 }, async (w, n: number): Promise<number> => {
      if (w.round === 1) return await w.continueWith(n + 1);
      return n;
    });
    const parent = defineWorkflow(
      "parent",
      { version: 1 },
      async (w, n: number): Promise<string> => {
        const result = await w.child("kid", child, 10 * n);
        const key = await w.step("key", async ({ idempotencyKey }) => idempotencyKey);
        expect(key).toBe(w.idempotencyKey("key"));
        seen.push(`${result}`, key, w.id("id"));
        return n < 2 ? await w.continueWith(n + 1) : `${result}`;
      },
    );
    const t = testWorkflow(parent, 0, { children: [child], replayEveryStep });
    expect(await t.settle()).toMatchObject({ status: "done", result: "21" });
    expect(new Set(seen.filter((text) => text.length > 2)).size).toBe(2 * 3);
    expect(seen).toEqual(expect.arrayContaining(["1", "11", "21"]));
    expect(await t.child("kid").run()).toMatchObject({ id: "test@3.kid", round: 2 });
  });

  test("undoes only the steps of the round that fails", async () => {
    const undone: number[] = [];
    const workflow = defineWorkflow("undo", { version: 1 }, async (w, n: number): Promise<void> => {
      await w.step("act", async () => n, { undo: (result) => void undone.push(result ?? -1) });
      if (n < 3) await w.continueWith(n + 1);
      throw new TerminalError("no");
    });
    const t = testWorkflow(workflow, 1, { replayEveryStep });
    expect(await t.settle()).toMatchObject({ status: "failed", round: 3 });
    expect(undone).toEqual([3]);
  });
});

test("ends other branches as a return does: bodies end, waits are dropped, children are cancelled", async () => {
  const child = defineWorkflow("child", { version: 1 }, async (w) => await w.signal("never"));
  const workflow = defineWorkflow(
    "branches",
    { version: 1 },
    async (w, n: number): Promise<number> => {
      if (n === 2) return n;
      void w.child("kid", child, undefined).catch(() => undefined);
      void w.sleep("long", "1d");
      void w.step("body", async () => 1);
      await w.signal("go");
      return await w.continueWith(2);
    },
  );
  const t = testWorkflow(workflow, 1, { children: [child] });
  t.holdStep("body");
  await t.settle();
  const kid = t.child("kid");
  expect(await t.signal("go")).toMatchObject({ status: "running", input: 1 });
  expect(await kid.run()).toMatchObject({ status: "waiting" });
  expect(await t.releaseStep("body")).toMatchObject({ status: "done", result: 2 });
  expect(t.bodies).toEqual(["body"]);
});

test("limits count for a round, and a round at its limit may still continue", async () => {
  const workflow = defineWorkflow(
    "limited",
    { version: 1, limits: { steps: 3 } },
    async (w, n: number): Promise<number> => {
      for (const name of ["a", "b", "c"]) await w.step(name, async () => n);
      return n < 5 ? await w.continueWith(n + 1) : n;
    },
  );
  const run = await testWorkflow(workflow, 1).settle();
  expect(run).toMatchObject({ status: "done", result: 5 });
  expect(run.warnings).toMatchObject([{ code: "many_steps" }]);
});

describe("the input of the next round", () => {
  const looping = (version: number, input: z.ZodType<Count>): AnyWorkflow =>
    defineWorkflow(
      "loop",
      { version, input, accepts: version > 1 ? [1] : [] },
      async (w, { n }): Promise<number> => {
        await w.signal("go");
        return n < 2 ? await w.continueWith({ n: n + 1 }) : n;
      },
    );
  const any = z.object({ n: z.number() });

  test("must fit the schema, else the run is blocked until corrected code runs", async () => {
    const t = testWorkflow(looping(1, z.object({ n: z.number().max(1) })) as never, { n: 1 });
    const run = await t.signal("go");
    expect(run.status).toBe("blocked");
    expect(run.blockedReason).toContain('the next input of "loop" does not fit its schema');
    t.deploy(looping(1, any));
    expect(await t.advance("1m")).toMatchObject({ status: "waiting", round: 2, input: { n: 2 } });
  });

  test("blocks a run, and does not fail it, if newer code rejects it", async () => {
    const t = testWorkflow(looping(1, any) as never, { n: 1 });
    await t.signal("go");
    t.deploy(looping(1, z.object({ n: z.number().max(1) })));
    expect(await t.signal("go")).toMatchObject({ status: "blocked", round: 2 });
    t.deploy(looping(1, any));
    expect(await t.advance("1m")).toMatchObject({ status: "done", result: 2 });
  });

  test("is at most 64 KiB", async () => {
    const large = defineWorkflow("large", { version: 1 }, async (w, _text: string) => {
      await w.continueWith("x".repeat(70_000));
    });
    const run = await testWorkflow(large, "").settle();
    expect(run.blockedReason).toContain("has 70002 bytes, the limit is 65536");
  });

  test("is copied at the call", async () => {
    const state = { n: 1 };
    const workflow = defineWorkflow(
      "copy",
      { version: 1 },
      async (w, { n }: Count): Promise<number> => {
        if (n === 1) return n;
        const [result] = await Promise.all([
          w.continueWith(state),
          (async () => void (state.n = 7))(),
        ]);
        return result;
      },
    );
    expect(await testWorkflow(workflow, { n: 0 }).settle()).toMatchObject({ result: 1 });
  });
});

test("a new version begins with the next round", async () => {
  const t = testWorkflow(counting(), { n: 0 });
  t.failStep("add", new Error("not yet"), { times: 3 });
  t.holdStep("add");
  await t.settle();
  t.deploy(counting(2, [1]));
  await t.releaseStep("add");
  expect((await t.run()).result).toBe("5 in round 5 by version 2");
});

test("cannot be called in the body of a step", async () => {
  const workflow = defineWorkflow("inside", { version: 1 }, async (w, n: number) => {
    await w.step("body", async () => await w.continueWith(n + 1));
  });
  expect(await testWorkflow(workflow, 1).settle()).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining('"continueWith" is called in the body of step') },
  });
});
