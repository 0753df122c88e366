import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import type { RunRef } from "../define/run-ref.ts";
import { runSpreadStep } from "../execution/run-spread-step.ts";
import { refOfSpread, spreadStepOf } from "../store/spread-step.ts";
import { createMemoryRunStore } from "./memory-run-store.ts";
import { testWorkflow } from "./test-workflow.ts";

test("spread steps run in the process of the test, with equal results", async () => {
  const make = (spread: boolean) =>
    defineWorkflow("encode", { version: 1 }, async (w) => {
      const outcomes = await w.map(["a", "b"], (name) =>
        w.step(`encode ${name}`, ({ attempt }) => `${name}/${attempt}`, {
          spread,
          undo: () => undefined,
        }),
      );
      await w.step("fail", () => Promise.reject(new Error("no")), {
        spread,
        retry: { attempts: 2 },
      });
      return outcomes;
    });
  const [spread, local] = [testWorkflow(make(true), null), testWorkflow(make(false), null)];
  for (const t of [spread, local]) t.crashIn("encode b");
  const [run, other] = [await spread.settle(), await local.settle()];
  expect(run).toMatchObject({ status: "failed" });
  expect({ ...run, error: run.error?.message }).toEqual({ ...other, error: other.error?.message });
  expect([...(await spread.steps()).keys()]).toEqual([...(await local.steps()).keys()]);
  expect(spread.bodies).toEqual(local.bodies);
});

test("a spread step whose input cannot be decoded waits as long as its run", async () => {
  const store = createMemoryRunStore({ now: () => 7_000 });
  const workflow = defineWorkflow("encode", { version: 1 }, async () => 1);
  const run = { workflow: "encode", id: "r@2" };
  const claim = async (ref: RunRef) => {
    const held = await store.claim(ref, { lease: 1, owner: "1", anew: true });
    if (held.kind !== "held") throw new Error(held.kind);
    return { ...held, unreadable: "codec_missing: configure it" };
  };
  await store.start({ ...run, version: 1, input: null });
  const spread = spreadStepOf(await claim(run), "a step");
  const ref = refOfSpread(spread);
  await store.start({ ...ref, version: 1, input: "?", parent: { ...run, step: "a step" } });
  const execute = async () =>
    await runSpreadStep({
      store,
      workflow,
      held: await claim(ref),
      stopped: new AbortController().signal,
      clock: () => 0,
      random: () => 0,
      wake: async () => undefined,
      onError: () => undefined,
    });
  expect(await execute()).toMatchObject({ kind: "blocked", reason: "codec_missing: configure it" });
  await store.terminate(run, {});
  expect(await execute()).toMatchObject({ kind: "ended", status: "cancelled" });
});

test("rejects an invalid spread at the call", async () => {
  const workflow = defineWorkflow("encode", { version: 1 }, async (w) => {
    await w.step("encode", () => 1, { spread: "yes" as unknown as boolean });
  });
  const run = await testWorkflow(workflow, null).settle();
  expect(run.blockedReason).toContain('spread of step "encode" must be true or false (got yes)');
});
