import { setTimeout as sleep } from "node:timers/promises";
import { TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, type AnyWorkflow } from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const ONCE = { retry: { attempts: 1 } };
const action = { by: "ann", reason: "deleted by hand" };

function work(...workflows: AnyWorkflow[]) {
  const runs = harness.openRuns();
  runs.work({ workflows, workerId: "test" });
  return runs;
}

test("a blocked compensation continues without a skipped undo", async () => {
  const undone: string[] = [];
  const undo = (step: string) => ({ undo: () => void undone.push(step) });
  const failing = {
    ...ONCE,
    undo: () => {
      throw new Error("404");
    },
  };
  const workflow = defineWorkflow("deploy", { version: 1 }, async (w) => {
    await w.step("namespace", () => "n", undo("namespace"));
    await w.step("create", () => "c", failing);
    await w.step("label", () => "l", undo("label"));
    await w.signal("go");
    throw new TerminalError("fails");
  });
  const runs = work(workflow);
  const ref = { workflow: "deploy", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await inStatus(runs, workflow, "r", "waiting");
  const skip = (skipUndo: string) => runs.retry(ref, { skipUndo, ...action });
  await expect(skip("create")).rejects.toMatchObject({ code: "run_active" });
  await runs.signal(ref, "go");
  await inStatus(runs, workflow, "r", "blocked");
  await expect(skip("creat")).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining('left to undo: "create", "namespace"') as string,
  });
  expect(await skip("create")).toEqual(ref);
  expect(await ended(runs, workflow, "r")).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["label", "namespace"]);
  const steps = await runs.steps(ref);
  expect(steps.find(({ name }) => name === "undo:create")?.skipped).toEqual(action);
  await expect(skip("create")).rejects.toMatchObject({ code: "run_ended" });
  await expect(runs.retry({ ...ref, id: "nobody" }, { skipUndo: "x" })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a run that has caught its cancellation is cancelled again, also within one execution", async () => {
  let items = 0;
  const caught: string[] = [];
  const workflow = defineWorkflow("loop", { version: 1 }, async (w) => {
    for (;;) {
      try {
        await w.step("item", async ({ signal }) => {
          items += 1;
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, 100);
            signal.addEventListener("abort", () => (clearTimeout(timer), resolve()));
          });
        });
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        caught.push(error.message);
        if (caught.length === 2) throw error;
      }
    }
  });
  const runs = work(workflow);
  const ref = { workflow: "loop", id: "l" };
  await runs.start(workflow, undefined, { id: "l" });
  await until("an item begins", () => items > 0);
  expect(await runs.cancel(ref, { by: "ann" })).toEqual({ effect: "requested" });
  await until("the run catches it", () => caught.length === 1);
  const begun = items;
  await until("the run goes on", () => items > begun + 1);
  expect(await runs.cancel(ref, { by: "bob" })).toEqual({ effect: "requested" });
  const run = await ended(runs, workflow, "l");
  expect(run).toMatchObject({ status: "cancelled", cancel: { by: "bob" } });
  expect(caught.map((message) => message.replace(/^.*: /, ""))).toEqual([
    "the run was cancelled by ann",
    "the run was cancelled by bob",
  ]);
});

test("a cancellation without effect says so, and names terminate", async () => {
  const old = defineWorkflow("ver", { version: 1 }, async (w) => await w.signal("go"));
  const runs = harness.openRuns();
  const worker = runs.work({ workflows: [old], workerId: "old" });
  await runs.start(old, undefined, { id: "v" });
  await inStatus(runs, old, "v", "waiting");
  await worker.stop();
  const newer = defineWorkflow("ver", { version: 2 }, async (w) => {
    await w.step("create", () => 1, { ...ONCE, undo: () => Promise.reject(new Error("404")) });
    throw new TerminalError("fails");
  });
  runs.work({ workflows: [newer], workerId: "new" });
  const ref = { workflow: "ver", id: "v" };
  await runs.signal(ref, "go");
  await inStatus(runs, old, "v", "blocked");
  expect(await runs.cancel(ref, { by: "ann" })).toEqual({
    effect: "delayed",
    note: "the run is blocked and is cancelled when it resumes; terminate the run to end it now, without undo",
  });
  expect(await runs.cancel(ref, { by: "bob" })).toMatchObject({ effect: "none" });
  await runs.start(newer, undefined, { id: "n" });
  await inStatus(runs, newer, "n", "blocked");
  expect(await runs.cancel({ workflow: "ver", id: "n" })).toEqual({
    effect: "none",
    note: "the run already undoes its steps; terminate the run to end it now, without undo",
  });
});

test("an undo begins after the end of a cancelled body that ignores its signal", async () => {
  const events: string[] = [];
  const begun = Promise.withResolvers<void>();
  const workflow = defineWorkflow("stubborn", { version: 1 }, async (w) => {
    const body = async ({ signal }: { readonly signal: AbortSignal }) => {
      const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
      begun.resolve();
      await aborted;
      // An undo that did not wait would run meanwhile.
      await sleep(1_000);
      events.push("body ended");
    };
    await w.step("copy", body, { undo: () => void events.push("undone") });
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  await begun.promise;
  await runs.cancel({ workflow: "stubborn", id });
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "cancelled" });
  expect(events).toEqual(["body ended", "undone"]);
});
