import { expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { z } from "zod";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const Resize = z.object({ size: z.int().min(1) });
const answered: number[] = [];
const pool = defineWorkflow("pool", { version: 1 }, async (w) => {
  const sizes: number[] = [];
  while (sizes.length < 2) {
    const current = sizes.at(-1) ?? 0;
    const { size } = await w.handle("resize", Resize, (update) => {
      answered.push(update.size);
      if (update.size < current) throw new TerminalError(`must not shrink below ${current}`);
      return { ...update, before: current };
    });
    sizes.push(size);
    await w.step("apply", () => size);
  }
  return sizes;
});

test.each([{ replayEveryStep: false }, { replayEveryStep: true }])(
  "answers each accepted update once, and gives the function the answer, with %o",
  async (options) => {
    answered.length = 0;
    const t = testWorkflow(pool, undefined, options);
    expect(await t.update("resize", { size: 2 })).toEqual({ size: 2, before: 0 });
    expect(await t.update("resize", { size: 5 })).toEqual({ size: 5, before: 2 });
    expect(await t.run()).toMatchObject({ status: "done", result: [2, 5] });
    expect(answered).toEqual([2, 5]);
    await t.replay();
    expect(answered).toEqual([2, 5]);
  },
);

test("a refused update is no record, and the wait continues", async () => {
  const t = testWorkflow(pool, undefined);
  await t.update("resize", { size: 3 });
  const before = [...(await t.steps()).keys()];
  await expect(t.update("resize", { size: "x" })).rejects.toMatchObject({
    code: "invalid_request",
    issues: [{ pointer: "/payload/size" }],
  });
  await expect(t.update("resize", { size: 1 })).rejects.toThrow("must not shrink below 3");
  expect([...(await t.steps()).keys()]).toEqual(before);
  expect(await t.run()).toMatchObject({ status: "waiting", waits: [{ kind: "update" }] });
  expect(await t.update("resize", { size: 4 })).toEqual({ size: 4, before: 3 });
});

test("a signal of the same name is no update", async () => {
  const t = testWorkflow(pool, undefined);
  await t.signal("resize", { size: 3 });
  expect(await t.run()).toMatchObject({ status: "waiting" });
  await expect(t.update("other", {})).rejects.toThrow('does not handle update "other" now');
});

test("returns null after the timeout", async () => {
  const timed = defineWorkflow("timed", { version: 1 }, async (w) => {
    return await w.handle("resize", Resize, ({ size }) => size, { timeout: "1h" });
  });
  const t = testWorkflow(timed, undefined);
  expect(await t.advance("59m")).toMatchObject({ status: "waiting" });
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: null });
});

test("a cancellation ends the wait", async () => {
  const t = testWorkflow(pool, undefined);
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
});

test.each([
  { title: "a promise", answer: async () => 1, message: "returned a promise" },
  { title: "a Date", answer: () => new Date(0), message: "cannot be recorded" },
])("an answer that is $title is an error of the workflow", async ({ answer, message }) => {
  let text = "";
  const wrong = defineWorkflow("wrong", { version: 1 }, async (w) => {
    try {
      await w.handle("resize", Resize, answer as unknown as () => number);
    } catch (error) {
      text = (error as Error).message;
    }
    return null;
  });
  const t = testWorkflow(wrong, undefined);
  await t.update("resize", { size: 1 }).catch(() => undefined);
  expect(text).toContain(message);
});
