import { setImmediate as nextTurn } from "node:timers/promises";
import { TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const retry = { attempts: Infinity, delay: "1s" } as const;

test.each(["return", "throw"])("a %s of the function ends the attempts of a step", async (how) => {
  const undone: string[] = [];
  let tries = 0;
  const workflow = defineWorkflow("polls", { version: 1 }, async (w) => {
    const poll = w.step(
      "poll",
      async () => {
        tries += 1;
        await nextTurn();
        if (tries < 500) throw new Error("not ready");
      },
      { retry, undo: () => void undone.push("poll") },
    );
    await Promise.race([poll, w.step("decide", async () => 1)]);
    if (how === "throw") throw new TerminalError("not ready in time");
  });
  const t = testWorkflow(workflow, undefined);
  const run = await t.settle();
  expect(run).toMatchObject({ status: how === "throw" ? "failed" : "done" });
  expect(tries).toBeLessThan(500);
  expect(undone).toEqual(how === "throw" ? ["poll"] : []);
});
