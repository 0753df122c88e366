import { guardLimits, type GateCall } from "@konverge/core";
import { expect, test } from "vitest";
import { createVirtualFleet, getCall, type VirtualWorker } from "./virtual-fleet.ts";
import { seed } from "../support/test-run.ts";

const list: GateCall = { ...getCall, verb: "list", cost: 10 };

test.each([1, 4, 8, 9, 64])(
  `a list that costs 10 tokens is sent with maxInFlight %i, and so are the calls behind it (seed ${seed})`,
  async (maxInFlight) => {
    const limits = guardLimits({ ratePerSecond: 500 });
    const fleet = createVirtualFleet({ limits, workers: 1, seed, maxInFlight });
    const [worker] = fleet.workers as [VirtualWorker];
    void worker.call(getCall);
    await fleet.clock.run(5_000);
    const sentBefore = fleet.sent.length;
    for (const call of [list, getCall, list, getCall]) void worker.call(call);
    await fleet.clock.run(6_000);
    expect(fleet.sent.slice(sentBefore).map(({ call }) => call.verb)).toEqual([
      "list",
      "get",
      "list",
      "get",
    ]);
    expect(Math.max(...fleet.sent.slice(sentBefore).map(({ waitedMs }) => waitedMs))).toBeLessThan(
      50,
    );
  },
);

test(`a list does not wait for prefetched tokens that are too few (seed ${seed})`, async () => {
  const limits = guardLimits({ ratePerSecond: 20_000 });
  const fleet = createVirtualFleet({ limits, workers: 60, seed });
  const { clock, random } = fleet;
  for (const worker of fleet.workers) {
    const untilMs = 3_000 + random() * 300;
    const steady = () => {
      if (clock.nowMs > untilMs)
        return void worker.schedule(4 + random() * 40, () => void worker.call(list));
      void worker.call(getCall);
      worker.schedule(12 + random() * 6, steady);
    };
    steady();
  }
  await clock.run(10_000);
  const waits = fleet.sent
    .filter(({ call }) => call.verb === "list")
    .map(({ waitedMs }) => waitedMs);
  expect(waits).toHaveLength(60);
  // Redis answers within a millisecond, and the rate is not exhausted.
  expect(Math.max(...waits)).toBeLessThan(20);
});
