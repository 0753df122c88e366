import { defineController, defineResource } from "@konverge/engine";
import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import { startTestCluster } from "../../../apps/cli/src/testing/start-test-cluster.ts";

const Payment = defineResource({
  group: "limits.test.konverge.dev",
  version: "v1",
  kind: "Payment",
  spec: z.object({ amount: z.int() }),
});

test("handlers and steps share the slots of a limit, and none of them fails", async () => {
  let active = 0;
  let most = 0;
  const calls: string[] = [];
  const call = async (name: string) => {
    active += 1;
    most = Math.max(most, active);
    calls.push(name);
    // Long enough for the others to ask.
    await new Promise((resolve) => setTimeout(resolve, 50));
    active -= 1;
  };
  const charge = defineWorkflow("charge", { version: 1 }, async (w, name: string) => {
    const spread = name < "run d";
    await w.step("charge", () => call(name), { limit: "stripe", spread });
  });
  const payments = defineController({
    name: "payments",
    for: Payment,
    async reconcile({ object, limit, startRun }) {
      const { name } = object.metadata;
      await startRun(charge, `run ${name}`);
      if (!calls.includes(name)) await limit("stripe", () => call(name));
    },
  });
  await using cluster = await startTestCluster({
    controllers: [payments],
    workflows: [charge],
    resources: [Payment],
    limits: { stripe: { concurrency: 2 } },
    deadlineMs: 60_000,
  });
  const names = ["a", "b", "c", "d", "e", "f"];
  await Promise.all(
    names.map((name) => cluster.apply(Payment, { metadata: { name }, spec: { amount: 1 } })),
  );
  await cluster.until("all have called", () => calls.length >= 12);
  expect(calls.toSorted()).toEqual([...names, ...names.map((name) => `run ${name}`)].toSorted());
  expect(most).toBeLessThanOrEqual(2);
});
