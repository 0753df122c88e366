import { expect, test } from "vitest";
import type { Approval } from "@konverge/queue";
import { createApprovalStore } from "@konverge/queue";
import { keepLog } from "../../../apps/cli/src/testing/kept-log.ts";
import {
  createFaultObserver,
  type FaultObserverOptions,
} from "../../../libs/worker/src/notify/observe-faults.ts";
import { CLUSTER, useQueues } from "../queue/queue-harness.ts";
import { useNotifiers } from "./notify-harness.ts";

const queues = useQueues();
const harness = useNotifiers(queues);
const KEY = "web/default/deployments.apps/demo/a";

const awaiting: Approval = {
  key: KEY,
  controller: "web",
  state: "awaiting",
  hash: "h1",
  summary: { update: 1 },
  by: 1,
  role: "operator",
  requesters: [],
  approvals: [],
  since: "2026-01-02T03:04:05.000Z",
  replaced: 0,
};

test("reports a plan that awaits approval until it is decided", async () => {
  const place = { prefix: queues.prefix, cluster: CLUSTER };
  const approvals = createApprovalStore(queues.redis, place);
  const observer = createFaultObserver({
    ...place,
    redis: queues.target,
    shards: 1,
    events: new Set(["approval"]),
    registry: {} as FaultObserverOptions["registry"],
    runs: () => {
      throw new Error("not read");
    },
    guard: {} as FaultObserverOptions["guard"],
    store: harness.store,
    log: keepLog([]),
  });
  const faults = async () => [...(await observer.observe()).faults.values()];
  try {
    expect(await faults()).toEqual([]);
    await approvals.change(KEY, () => awaiting);
    expect(await faults()).toEqual([
      {
        event: "approval",
        subject: KEY,
        group: "web",
        summary: "web: the plan of demo/a awaits approval",
        sinceMs: Date.parse(awaiting.since),
      },
    ]);
    for (const state of ["approved", "applying", "rejected"] as const) {
      await approvals.change(KEY, () => ({ ...awaiting, state }));
      expect(await faults()).toEqual([]);
    }
  } finally {
    await observer.close();
  }
});

test("keeps the start of contention that another process has stored", async () => {
  await harness.store.setContended(new Map([["web/a", 5]]));
  await harness.store.setContended(
    new Map([
      ["web/a", 9],
      ["web/b", 7],
    ]),
  );
  expect(Object.fromEntries(await harness.store.contended())).toEqual({ "web/a": 5, "web/b": 7 });
  await harness.store.setContended(new Map([["web/a", undefined]]));
  expect(Object.fromEntries(await harness.store.contended())).toEqual({ "web/b": 7 });
});
