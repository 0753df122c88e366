import assert from "node:assert/strict";
import { defineController, defineResource, type Controller } from "@konverge/engine";
import { Deployment } from "@konverge/kube/kinds";
import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  simulate,
  type Simulation,
  type SimulationFailure,
  type SimulatedReaction,
} from "../../apps/cli/src/testing/index.ts";
import { nodePool } from "../../apps/examples/src/node-pool.ts";
import { NodePool } from "../../apps/examples/src/resources.ts";
import { blockOf, blocksOf, functionOf } from "../integration/docs/load-block.ts";

const PAGE = "docs/simulate.md";
const Order = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Order",
  spec: z.object({}),
  status: z.object({ paid: z.boolean() }),
});

test("docs/simulate.md: the example passes", async () => {
  const run = await functionOf(blockOf("docs/simulate.md ts 1"), [
    "simulate",
    "assert",
    "nodePool",
    "NodePool",
  ]);
  await expect(run({ simulate, assert, nodePool, NodePool })).resolves.toBeUndefined();
});

test("docs/simulate.md: a payment without protection fails with the story of the page", async () => {
  const define = await functionOf<(charge: (uid: string) => void) => Controller>(
    blockOf("docs/simulate.md ts 3"),
    ["defineController", "Order"],
    "payments",
  );
  const payments = await define({ defineController, Order });
  const run = await functionOf<SimulationFailure | undefined>(
    blockOf("docs/simulate.md ts 4"),
    ["payments", "simulate", "Order"],
    "failure",
  );
  const failure = await run({ payments, simulate, Order });
  const [story] = blocksOf(PAGE).filter(({ language }) => language === "text");
  expect(`${failure?.story}\n`).toBe(story?.text);
});

test("docs/simulate.md: the file of konverge simulate has a simulation", async () => {
  const scenario = { run: async () => undefined };
  const run = await functionOf<Simulation>(
    blockOf("docs/simulate.md ts 2"),
    ["nodePool", "scenario"],
    "exported",
  );
  const simulation = await run({ nodePool, scenario });
  expect(simulation).toEqual({ config: { controllers: [nodePool] }, scenario });
});

test("docs/simulate.md: a workflow that charges without a key fails, and passes with one", async () => {
  const block = blockOf("docs/simulate.md ts 5");
  const names = ["simulate", "defineWorkflow", "ship"];
  const env = { simulate, defineWorkflow, ship: () => undefined };
  const failure = await (await functionOf<SimulationFailure>(block, names, "failure"))(env);
  expect(failure.violations[0]).toEqual({
    check: "the order is charged once",
    detail: "2 charges (at rest)",
  });
  const text = block.text.replace(
    "() => void charges.push(id)",
    "({ idempotencyKey: key }) => void (charges.includes(key) || charges.push(key))",
  );
  expect(text).not.toBe(block.text);
  const short = text.replace(
    "simulate(config, scenario)",
    "simulate(config, scenario, { seeds: 30 })",
  );
  const run = await functionOf({ ...block, text: short }, names, "failure");
  await expect(run(env)).resolves.toBeUndefined();
});

test("docs/simulate.md: a reaction makes Deployments ready", async () => {
  const run = await functionOf<SimulatedReaction[]>(
    blockOf("docs/simulate.md ts 6"),
    ["Deployment"],
    "reactions",
  );
  const reactions = await run({ Deployment });
  const { failure } = await simulate(
    { controllers: [nodePool] },
    {
      reactions,
      async run(user) {
        const labels = { app: "web" };
        await user.apply(Deployment, {
          metadata: { name: "web" },
          spec: {
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: { containers: [{ name: "web", image: "web" }] },
            },
          },
        });
        await user.settled();
      },
      finally: {
        "the Deployment is ready": (objects) =>
          objects.get(Deployment, "web")?.status?.readyReplicas === 1 ? undefined : "it is not",
      },
    },
    { seeds: 1 },
  );
  expect(failure?.story).toBeUndefined();
});
