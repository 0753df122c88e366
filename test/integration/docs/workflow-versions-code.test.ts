import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

test("docs/workflow-versions.md: a patched workflow", async () => {
  const log: string[] = [];
  const names = ["checkStock", "charge", "refund", "ship"];
  const run = await functionOf<Workflow<{ id: string }>>(
    blockOf("docs/workflow-versions.md ts 1"),
    ["defineWorkflow", ...names],
    "order",
  );
  const calls = names.map((name) => [name, (id: string) => void log.push(`${name} ${id}`)]);
  const order = await run({ defineWorkflow, ...Object.fromEntries(calls) });
  const t = testWorkflow(order, { id: "a" });
  await t.settle();
  expect(await t.signal("picked")).toMatchObject({ status: "done", version: 2 });
  expect(log).toEqual(["checkStock a", "charge a", "ship a"]);
});
