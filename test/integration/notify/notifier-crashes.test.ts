import { fileURLToPath } from "node:url";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { NotificationRecord } from "@konverge/queue";
import { webhook } from "@konverge/worker";
import { useChildren } from "../../support/child.ts";
import { until } from "../../support/until.ts";
import { CLUSTER, useQueues } from "../queue/queue-harness.ts";
import type { NotifierChildConfig } from "./notifier-child.ts";
import { faultOf, useNotifiers } from "./notify-harness.ts";
import { useReceivers } from "./receiver.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const CHILD = fileURLToPath(new URL("notifier-child.ts", import.meta.url));
const FAULTS = 4;
const queues = useQueues();
const harness = useNotifiers(queues);
const openReceiver = useReceivers();
const startChild = useChildren();

const idOf = (body: unknown) => (body as { readonly id: string }).id;

test("sends a message again with the same ID if the leader is killed before it records the answer", async () => {
  const receiver = await openReceiver();
  const fault = faultOf(1, { event: "approval" });
  const config: NotifierChildConfig = {
    redis: queues.target,
    prefix: queues.prefix,
    cluster: CLUSTER,
    receiver: receiver.url,
    fault,
  };
  harness.begin(fault);
  receiver.answer = () => "never";
  const child = startChild([CHILD, JSON.stringify(config)]);
  await until("the first try", () => receiver.messages.length === 1);
  await child.kill();
  receiver.answer = () => ({ status: 200 });
  harness.start([{ on: ["approval"], to: webhook(receiver.url, { format: "json" }), group: "0s" }]);
  await until("the message is sent", async () => {
    const [newest] = await harness.store.list(1);
    return newest?.state === "sent";
  });
  const [first, second, ...more] = receiver.messages.map(({ body }) => idOf(body));
  expect(second).toBe(first);
  expect(more).toEqual([]);
  expect(await harness.store.list(10)).toHaveLength(1);
});

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("begin"), at: fc.nat(FAULTS - 1) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("end"), at: fc.nat(FAULTS - 1) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("restart", "observe"), at: fc.nat() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("answer"),
      at: fc.constantFrom(200, 204, 400, 429, 503),
    }),
  },
);

/** Returns whether the receiver was last notified of the begin of each fault. Each fault is a group of its own. */
function toldBy(records: readonly NotificationRecord[]): Set<string> {
  const told = new Set<string>();
  for (const { groups } of records) {
    for (const { group, firing, resolved } of groups) {
      expect(firing + resolved, "each message reports one change of a fault").toBe(1);
      expect(told.has(group), "begins and ends alternate").toBe(resolved === 1);
      if (firing === 1) told.add(group);
      else told.delete(group);
    }
  }
  return told;
}

test("reports each begin and end once, in any order of faults, failures and restarts", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      run += 1;
      harness.faults.clear();
      const receiver = await openReceiver();
      const accepted = new Set<string>();
      let status = 200;
      receiver.answer = ({ body }) => {
        if (status < 300) accepted.add(idOf(body));
        return { status, headers: { "retry-after": "0" } };
      };
      const name = `run-${run}`;
      const to = webhook(receiver.url, { format: "json", name });
      const rules = [{ on: ["dead_letter"] as const, to, group: "0s" as const }];
      const records = async () =>
        (await harness.store.list(1_000)).filter((each) => each.receiver === name).toReversed();
      // A deployment with other events for the receiver has no part in these faults.
      const foreign = [{ on: ["run_blocked"] as const, to, group: "0s" as const }];
      const start = () => [harness.start(rules), harness.start(rules), harness.start(foreign)];
      let notifiers = start();
      const stop = () => Promise.all(notifiers.map((each) => each.stop()));
      for (const { kind, at } of steps) {
        const fault = faultOf(at, { group: `g-${at}` });
        if (kind === "begin") harness.begin(fault);
        if (kind === "end") harness.end(fault);
        if (kind === "answer") status = at;
        if (kind === "observe") await harness.observed();
        if (kind === "restart") {
          await stop();
          notifiers = start();
        }
      }
      status = 200;
      const open = new Set([...harness.faults.values()].map(({ group }) => group));
      const told = await until("the receiver has the current faults", async () => {
        const all = await records();
        const last = toldBy(all);
        const isSame = open.size === last.size && [...open].every((group) => last.has(group));
        return isSame && all.every(({ state }) => state !== "waiting") && last;
      });
      await stop();
      expect(told).toEqual(open);
      for (const { id, state } of await records()) expect(accepted.has(id)).toBe(state === "sent");
      await receiver.close();
    }),
    { seed, numRuns: isLongRun ? 100 : 12 },
  );
});
