import { startApi } from "@konverge/api";
import { TerminalError } from "@konverge/core";
import { createClient, ProblemError, type Client } from "@konverge/client";
import { readSettings } from "@konverge/contracts";
import { defineWorkflow, type Workflow } from "@konverge/workflow";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openAnnounced } from "../queue/announce.ts";
import { testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";
import { blockOf, functionOf } from "./load-block.ts";

const harness = useQueues();
const invoice = defineWorkflow("invoice", { version: 1 }, async (w, id: string) => {
  return await w.step("write", () => `invoice ${id}`);
});

/** Returns activities that log their calls. `ship` fails while `broken` has it. */
function activitiesOf(log: string[], broken: ReadonlySet<string> = new Set()) {
  const names = ["reserve", "release", "charge", "refund", "ship"];
  const entries = names.map((name) => [
    name,
    async (...args: readonly unknown[]) => {
      log.push([name, ...args].join(" "));
      if (broken.has(name)) throw new Error(`${name} fails`);
    },
  ]);
  return Object.fromEntries(entries) as Record<string, () => Promise<void>>;
}

interface Order {
  readonly id: string;
  readonly amount: number;
}

async function loadOrder(log: string[], broken?: ReadonlySet<string>): Promise<Workflow<Order>> {
  const block = blockOf("docs/from-temporal.md ts 1");
  // The reader's own modules.
  const text = block.text.replaceAll(/^import .* from "\.\/.*\n/gm, "");
  const activities = activitiesOf(log, broken);
  const run = await functionOf<Workflow<Order>>(
    { ...block, text },
    ["invoice", ...Object.keys(activities)],
    "order",
  );
  return await run({ ...activities, invoice });
}

test("docs/from-temporal.md: the ported order behaves as Temporal's", async () => {
  const log: string[] = [];
  const order = await loadOrder(log);
  const input = { id: "7", amount: 30 };
  const t = testWorkflow(order, input, { children: [invoice], replayEveryStep: true });
  const begun = await t.settle();
  expect(begun).toMatchObject({
    published: { progress: "waiting" },
    labels: { phase: "waiting" },
    status: "waiting",
  });
  // The update is accepted while the run waits for the approval, and an empty address is refused.
  await expect(t.update("setAddress", "")).rejects.toThrow("Too small");
  expect(await t.update("setAddress", "Main St 1")).toBe("Main St 1");
  expect(await t.advance("23h")).toMatchObject({ status: "waiting" });
  await t.signal("approve", { by: "ann" });
  expect(log.at(-1)).toBe("charge 7 30");
  expect(await t.advance("30m")).toMatchObject({ status: "done", result: "invoice 7" });
  expect(log).toEqual(["reserve 7", "charge 7 30", "ship 7 Main St 1"]);
});

test("docs/from-temporal.md: the ported order undoes its steps without approval, and when a step fails", async () => {
  const log: string[] = [];
  const late = testWorkflow(await loadOrder(log), { id: "7", amount: 30 }, { children: [invoice] });
  expect(await late.advance("24h")).toMatchObject({
    status: "failed",
    error: { message: "not approved within a day" },
  });
  expect(log.slice(2)).toEqual(["refund 7", "release 7"]);
  log.length = 0;
  const broken = await loadOrder(log, new Set(["charge"]));
  const failed = testWorkflow(broken, { id: "8", amount: 30 }, { children: [invoice] });
  expect(await failed.advance("1h")).toMatchObject({ status: "failed" });
  const charges = Array.from({ length: 5 }, () => "charge 8 30");
  expect(log).toEqual(["reserve 8", ...charges, "refund 8", "release 8"]);
});

/** Runs the workflow as a worker does, and returns a client of its API. */
async function serve(order: Workflow<Order>): Promise<Client> {
  const { apiUrl: url, prefix } = harness;
  const workflows = [order, invoice];
  const runs = await openAnnounced(harness, workflows);
  runs.work({ workflows });
  const env = {
    KONVERGE_REDIS_URL: url,
    KONVERGE_PREFIX: prefix,
    KONVERGE_API_PORT: "0",
    KONVERGE_LOG_LEVEL: "silent",
  };
  const api = await startApi({ settings: readSettings({ env }), version: "test" });
  onTestFinished(() => api.stop());
  return createClient({ server: api.url });
}

test("docs/from-temporal.md: a client starts an order, and signals, updates and reads it", async () => {
  const log: string[] = [];
  const client = await serve(await loadOrder(log));
  const run = await functionOf<{ id: string; answer: unknown; published: unknown }>(
    blockOf("docs/from-temporal.md ts 2"),
    ["client"],
    "{ id, answer, published }",
  );
  const shown = await run({ client });
  expect(shown).toMatchObject({ id: "order/default/order-7", answer: "Main St 1" });
  expect(shown.published).toHaveProperty("progress");
  await until("it sleeps", async () => {
    const { waits = [] } = await client.runs.get(shown.id);
    return waits.some(({ step }) => step === "cooling-off");
  });
});

test("docs/from-temporal.md: an approval reaches the engine that has the order", async () => {
  const client = await serve(await loadOrder([]));
  const sent: unknown[] = [];
  const temporal = {
    workflow: {
      getHandle: (id: string) => ({
        signal: async (...signal: readonly unknown[]) => void sent.push([id, ...signal]),
      }),
    },
  };
  const run = await functionOf<(id: string, by: string) => Promise<void>>(
    blockOf("docs/from-temporal.md ts 3"),
    ["client", "temporal", "ProblemError"],
    "approveOrder",
  );
  const approveOrder = await run({ client, temporal, ProblemError });
  const input = { id: "8", amount: 30 };
  const { id } = await client.runs.start({ workflow: "order", id: "order-8", input });
  await approveOrder("8", "ann");
  await until("the approval is recorded", async () => {
    const { steps } = await client.runs.get(id);
    return steps.some(({ name }) => name === "approve");
  });
  expect(sent).toEqual([]);
  await approveOrder("9", "ann");
  expect(sent).toEqual([["order-9", "approve", { by: "ann" }]]);
});

test("docs/from-temporal.md: a moved order repeats nothing and undoes what Temporal did", async () => {
  const log: string[] = [];
  const activities = activitiesOf(log);
  const run = await functionOf<Workflow<Order & { readonly done: readonly string[] }>>(
    blockOf("docs/from-temporal.md ts 4"),
    ["defineWorkflow", "Moved", ...Object.keys(activities)],
    "movedOrder",
  );
  const Moved = z.object({ id: z.string(), amount: z.number(), done: z.array(z.string()) });
  const moved = await run({ defineWorkflow, Moved, TerminalError, ...activities });
  const input = { id: "7", amount: 30, done: ["reserve"] };
  const t = testWorkflow(moved, input, { replayEveryStep: true });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect(log).toEqual(["charge 7 30"]);
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  expect(log.slice(1)).toEqual(["refund 7", "release 7"]);
});
