import { TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, undosLeft, type AnyWorkflow } from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();
const ONCE = { retry: { attempts: 1 } };
const action = { by: "ann", reason: "the object is gone" };

function work(...workflows: AnyWorkflow[]) {
  const runs = harness.openRuns();
  runs.work({ workflows, workerId: "test" });
  return runs;
}

test("a run whose undo cannot succeed is terminated, and the run behind it begins", async () => {
  const workflow = defineWorkflow("generation", { version: 1 }, async (w, number: number) => {
    await w.step("namespace", () => "n", { undo: () => undefined });
    await w.step("label", () => "l");
    await w.step("create", () => "c", {
      ...ONCE,
      undo: () => {
        throw new Error("404");
      },
    });
    if (number === 1) throw new TerminalError("generation 1 fails");
    return number;
  });
  const runs = work(workflow);
  const ref = { workflow: "generation", id: "g1" };
  await runs.start(workflow, 1, { id: "g1", key: "web" });
  await inStatus(runs, workflow, "g1", "blocked");
  await runs.start(workflow, 2, { id: "g2", key: "web", onExisting: "supersede" });
  await runs.terminate(ref, action);
  const run = await ended(runs, workflow, "g1");
  expect(run).toMatchObject({
    status: "cancelled",
    terminated: action,
    error: {
      code: "terminated",
      message: "the run was terminated by ann: the object is gone",
    },
  });
  expect(undosLeft(await runs.steps(ref))).toEqual(["create", "namespace"]);
  expect(await ended(runs, workflow, "g2")).toMatchObject({ status: "done", result: 2 });
  await expect(runs.terminate(ref, { by: "bob" })).rejects.toMatchObject({ code: "run_ended" });
  await expect(runs.terminate({ ...ref, id: "nobody" })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a running body is aborted, and neither it nor its undo is recorded", async () => {
  const { promise: aborted, resolve: abort } = Promise.withResolvers<void>();
  let begun = false;
  let undone = false;
  const workflow = defineWorkflow("copy", { version: 1 }, async (w) => {
    const undo = () => void (undone = true);
    await w.step("prepare", () => 1, { undo });
    await w.step(
      "copy",
      async ({ signal }) => {
        begun = true;
        signal.addEventListener("abort", () => abort(), { once: true });
        await aborted;
        return "copied";
      },
      { undo },
    );
    await w.step("after", () => void (undone = true));
  });
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    await w.child("copy", workflow, undefined as never).catch(() => undefined);
    return "continued";
  });
  const runs = work(workflow, parent);
  await runs.start(parent, undefined, { id: "p" });
  await until("the body begins", () => begun);
  const ref = { workflow: "copy", id: "p.copy" };
  await runs.terminate(ref, action);
  await aborted;
  expect(await ended(runs, parent, "p")).toMatchObject({ status: "done", result: "continued" });
  expect((await runs.steps(ref)).map(({ name }) => name)).toEqual(["prepare"]);
  expect(undone).toBe(false);
});

test("a run that no worker has code for is terminated, and its id and key are free", async () => {
  const old = defineWorkflow("ver", { version: 1 }, async (w) => await w.signal("go"));
  const runs = harness.openRuns();
  const worker = runs.work({ workflows: [old], workerId: "old" });
  await runs.start(old, undefined, { id: "v", key: "k" });
  await inStatus(runs, old, "v", "waiting");
  await worker.stop();
  const ref = { workflow: "ver", id: "v" };
  await runs.terminate(ref, action);
  expect(await runs.get(ref)).toMatchObject({ status: "cancelled" });
  const newer = defineWorkflow("ver", { version: 2 }, async () => "v2");
  runs.work({ workflows: [newer], workerId: "new" });
  await runs.start(newer, undefined, { id: "w", key: "k", onExisting: "reject" });
  expect(await ended(runs, newer, "w")).toMatchObject({ status: "done", result: "v2" });
  expect(await runs.retry(ref)).toEqual({ workflow: "ver", id: "v~2" });
});

test("a terminated run resumes where it was, with another execution", async () => {
  const workflow = defineWorkflow("resumed", { version: 1 }, async (w) => {
    await w.step("one", () => 1);
    return await w.signal("go");
  });
  const runs = work(workflow);
  const ref = { workflow: "resumed", id: "r" };
  await runs.start(workflow, undefined, { id: "r" });
  await inStatus(runs, workflow, "r", "waiting");
  await runs.terminate(ref, action);
  await runs.retry(ref, { fromFailed: true, by: "bob" });
  await runs.signal(ref, "go", { payload: "on" });
  const run = await ended(runs, workflow, "r");
  expect(run).toMatchObject({ status: "done", result: "on" });
  expect(run.terminated).toBeUndefined();
});
