import { expect, test } from "vitest";
import { defineWorkflow } from "@konverge/workflow";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const runs = useWorkflows();

test("a function that awaits something other than a verb frees its slot, and a cancellation ends it", async () => {
  const undone: string[] = [];
  const workflow = defineWorkflow(
    "hung",
    { version: 1, stallTimeout: "200ms" },
    async (w, hangs: boolean) => {
      await w.step("create", async () => 1, { undo: () => void undone.push(w.runId) });
      if (hangs) await new Promise(() => undefined);
    },
  );
  const workflows = runs.openRuns();
  workflows.work({ workflows: [workflow], workerId: "w1", concurrency: 1 });
  await workflows.start(workflow, true, { id: "hung" });
  await workflows.start(workflow, false, { id: "behind" });
  expect(await ended(workflows, workflow, "behind")).toMatchObject({ status: "done" });
  expect(await inStatus(workflows, workflow, "hung", "blocked")).toMatchObject({
    blockedReason: expect.stringContaining('after step "create"') as string,
  });
  await workflows.cancel({ workflow: "hung", id: "hung" }, { by: "ann", reason: "hangs" });
  expect(await ended(workflows, workflow, "hung")).toMatchObject({
    status: "cancelled",
    error: { code: "cancelled", message: "the run was cancelled by ann: hangs" },
  });
  expect(undone).toEqual(["hung"]);
});
