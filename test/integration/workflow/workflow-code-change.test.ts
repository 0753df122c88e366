import { expect, test } from "vitest";
import { defineWorkflow, type WorkflowContext } from "@konverge/workflow";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();

test("new code finishes runs of both versions, each with its own steps", async () => {
  const log: string[] = [];
  const step = async (w: WorkflowContext, name: string) =>
    await w.step(name, async () => void log.push(`${w.runId}: ${name}`));
  const define = (version: number) =>
    defineWorkflow(
      "patched",
      { version, accepts: version === 1 ? [] : [1], strict: true },
      async (w) => {
        await step(w, "charge");
        if (w.version >= 2) await step(w, "check");
        await w.signal("go");
        await step(w, w.version >= 2 ? "ship by drone" : "ship");
      },
    );
  const old = define(1);
  const oldRuns = harness.openRuns();
  const oldWorker = oldRuns.work({ workflows: [old], workerId: "old" });
  await oldRuns.start(old, undefined, { id: "old" });
  await inStatus(oldRuns, old, "old", "waiting");
  await oldWorker.stop();

  const patched = define(2);
  const runs = harness.openRuns();
  runs.work({ workflows: [patched], workerId: "new" });
  await runs.start(patched, undefined, { id: "new" });
  await inStatus(runs, patched, "new", "waiting");
  for (const id of ["old", "new"]) {
    await runs.signal({ workflow: "patched", id }, "go");
    const run = await ended(runs, patched, id);
    expect(run).toMatchObject({ status: "done", version: id === "old" ? 1 : 2 });
    expect(run.warnings).toBeUndefined();
  }
  expect(new Set(log)).toEqual(
    new Set(["old: charge", "old: ship", "new: charge", "new: check", "new: ship by drone"]),
  );
});

test("a renamed step is reported on the run and to the worker, once", async () => {
  const reported: string[] = [];
  const define = (name: string) =>
    defineWorkflow("renamed", { version: 1 }, async (w) => {
      await w.step(name, async () => undefined);
      await w.signal("go");
      await w.step("finish", async () => undefined);
    });
  const old = define("charge");
  const oldRuns = harness.openRuns();
  const oldWorker = oldRuns.work({ workflows: [old], workerId: "old" });
  await oldRuns.start(old, undefined, { id: "r" });
  await inStatus(oldRuns, old, "r", "waiting");
  await oldWorker.stop();

  const renamed = define("charge card");
  const runs = harness.openRuns({
    onWarning: ({ id }, { code }) => reported.push(`${id} ${code}`),
  });
  runs.work({ workflows: [renamed], workerId: "new" });
  await runs.signal({ workflow: "renamed", id: "r" }, "go");
  const { warnings } = await ended(runs, renamed, "r");
  expect(warnings).toMatchObject([{ code: "code_changed" }]);
  expect(warnings?.[0]?.message).toContain('no longer calls "charge"');
  expect(reported).toEqual(["r code_changed"]);
});
