import { defineResource, type Controller } from "@konverge/engine";
import { defineConfig, type Config } from "@konverge/worker";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import { startTestCluster, testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

interface Order {
  readonly id: string;
  readonly tenant: string;
}
const order: Order = { id: "o1", tenant: "acme" };

const Payment = defineResource({
  group: "docs.konverge.dev",
  version: "v1",
  kind: "Payment",
  spec: z.object({ amount: z.int() }),
});

async function loadRefund(calls: string[] = []): Promise<Workflow<Order>> {
  const run = await functionOf<Workflow<Order>>(
    blockOf("docs/limits.md ts 2"),
    ["stripe", "writeExport"],
    "refund",
  );
  return await run({
    stripe: { refund: ({ id }: Order) => void calls.push(`refund ${id}`) },
    writeExport: ({ tenant }: Order) => void calls.push(`export ${tenant}`),
  });
}

async function loadPayments(charge: (spec: unknown) => void): Promise<Controller> {
  const run = await functionOf<Controller>(
    blockOf("docs/limits.md ts 3"),
    ["Payment", "stripe"],
    "payments",
  );
  return await run({ Payment, stripe: { charge } });
}

test("docs/limits.md: the limits of a configuration, in a handler and in a workflow", async () => {
  const charged: unknown[] = [];
  const payments = await loadPayments((spec) => void charged.push(spec));
  const refund = await loadRefund();
  const configure = await functionOf<Config>(
    blockOf("docs/limits.md ts 1"),
    ["payments", "refund"],
    "exported",
  );
  const { limits } = await configure({ payments, refund });
  expect(Object.keys(limits)).toEqual(["stripe", "mail", "exports"]);
  await using cluster = await startTestCluster({
    controllers: [payments],
    limits,
    deadlineMs: 60_000,
  });
  await cluster.apply(Payment, { metadata: { name: "one" }, spec: { amount: 3 } });
  await cluster.until("the payment is charged", () => charged.length > 0);
  expect(charged[0]).toEqual({ amount: 3 });
});

test("docs/limits.md: the test of a workflow with limits passes", async () => {
  const calls: string[] = [];
  const refund = await loadRefund(calls);
  const run = await functionOf(blockOf("docs/limits.md ts 5"), [
    "testWorkflow",
    "refund",
    "order",
    "expect",
  ]);
  await run({ testWorkflow, refund, order, expect });
  expect(calls).toEqual(["refund o1", "export acme"]);
});

test("docs/limits.md: a run takes a slot of its tenant", async () => {
  const copied: string[] = [];
  const run = await functionOf<Workflow<Order>>(
    blockOf("docs/limits.md ts 4"),
    ["copyData"],
    "migrate",
  );
  const migrate = await run({ copyData: (tenant: string) => void copied.push(tenant) });
  expect(migrate.concurrency).toMatchObject({ runs: 2 });
  const t = testWorkflow(migrate, order);
  await t.settle();
  expect(copied).toEqual(["acme"]);
  expect((await t.signal("verified")).status).toBe("done");
});

test("docs/workflow-limits.md: a workflow with its own retention", async () => {
  const run = await functionOf<Workflow<string>>(
    blockOf("docs/workflow-limits.md ts 1"),
    [],
    "report",
  );
  const report = await run({});
  expect(report.retention).toEqual({ timeMs: 86_400_000, bytes: 33_554_432 });
  const t = testWorkflow(report, "eu");
  expect((await t.settle()).result).toBe("report of eu");
});

test("reports an invalid retention with its names", () => {
  const retention = { time: "1s", bytes: 10 } as const;
  const define = () => defineWorkflow("x", { version: 1, retention }, async () => null);
  expect(define).toThrow(/retention\.time must be a duration of at least 1m \(got "1s"\)/);
  expect(define).toThrow(/retention\.bytes must be an integer >= 1048576 \(got 10\)/);
});

test("reports all invalid limits with their names", () => {
  const broken = { "a b": { rate: 1 }, slow: { rate: 0 }, odd: { burst: 2 }, none: { slots: 2 } };
  const define = () =>
    defineConfig({
      workflows: [defineWorkflow("x", { version: 1 }, async () => null)],
      limits: broken as never,
    });
  expect(define).toThrow(/limits: name "a b" must be/);
  expect(define).toThrow(/limits\.slow\.rate: must be a number above 0/);
  expect(define).toThrow(/limits\.odd\.rate: is required with per and burst/);
  expect(define).toThrow(/limits\.none\.slots: is unknown; valid options: rate, per, burst/);
});
