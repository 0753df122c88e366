import { formatKey } from "@konverge/core";
import { createApprovalStore, type AttemptLease } from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { openApprovalGate } from "../../../libs/engine/src/approve/approval-gate.ts";
import { keyOf, useQueues } from "../queue/queue-harness.ts";

const queues = useQueues();
const key = keyOf("blue");
const rule = { when: () => true, by: 1, role: "operator" } as const;
const record = { hash: "h", summary: {}, startedAt: "" } as unknown as PlanRecord;

/** The gate of the attempt with this epoch. `newest`: the epoch of the key in the queue. */
async function gateOf({
  epoch,
  startedAtMs = 0,
  newest,
}: {
  readonly epoch: number;
  readonly startedAtMs?: number;
  readonly newest: number;
}) {
  const { redis, prefix } = queues;
  const approvals = createApprovalStore(redis, { prefix, cluster: "default" });
  const lease = { id: formatKey(key), key, epoch, startedAtMs, triggers: [] };
  return await openApprovalGate(lease as unknown as AttemptLease, {
    approvals,
    rule,
    newestEpoch: async () => newest,
  });
}

test("a newer attempt changes the approval, even if the clock of Redis went back", async () => {
  const old = await gateOf({ epoch: 1, startedAtMs: 2_000, newest: 1 });
  await old.propose(record, "salt");
  const next = await gateOf({ epoch: 2, startedAtMs: 1_000, newest: 2 });
  expect(await next.propose(record, "salt")).toMatchObject({ state: "awaiting", epoch: 2 });
});

test("an attempt cannot change an approval that a newer one has changed", async () => {
  const suspended = await gateOf({ epoch: 1, newest: 2 });
  const next = await gateOf({ epoch: 2, newest: 2 });
  await next.propose(record, "salt");
  await expect(suspended.propose(record, "salt")).rejects.toThrow(/a newer attempt/);
  await expect(suspended.drop()).rejects.toThrow(/a newer attempt/);
  expect(await next.read()).toMatchObject({ epoch: 2 });
});

test("the newest attempt of the queue changes an approval after the queue has lost its epochs", async () => {
  const before = await gateOf({ epoch: 9, newest: 9 });
  await before.propose(record, "salt");
  const first = await gateOf({ epoch: 1, newest: 1 });
  expect(await first.propose(record, "salt")).toMatchObject({ epoch: 1 });
});
