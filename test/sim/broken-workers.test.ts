import { guardLimits, type CallResult } from "@konverge/core";
import { expect, test } from "vitest";
import { answered, callForEver, createVirtualFleet, getCall } from "./virtual-fleet.ts";
import { seed } from "../support/test-run.ts";

const network: CallResult = { kind: "network" };
const RUN_MS = 60_000;

/** A fleet in which some workers cannot reach the server, for a time. */
async function play(options: {
  readonly healthy: number;
  readonly broken: number;
  readonly everyMs: number;
  /** From when on all workers fail, and until when. */
  readonly outageMs?: readonly [number, number];
}) {
  const { healthy, broken, everyMs, outageMs: [fromMs, untilMs] = [0, 0] } = options;
  const limits = guardLimits({});
  const fleet = createVirtualFleet({
    limits,
    workers: healthy + broken,
    seed,
    server: ({ worker, atMs }) => {
      const isBroken = Number(worker.slice(1)) >= healthy;
      const isOut = atMs >= fromMs && atMs < untilMs;
      return { result: isBroken || isOut ? network : answered(200), tookMs: 3 };
    },
  });
  for (const [i, worker] of fleet.workers.entries()) {
    const thinkMs = () => (i < healthy ? everyMs * (0.5 + fleet.random()) : 200);
    for (let caller = 0; caller < (i < healthy ? 1 : 8); caller += 1) {
      callForEver(worker, () => ({ call: getCall, thinkMs: thinkMs() }));
    }
  }
  await fleet.clock.run(RUN_MS);
  return { fleet, limits, openings: fleet.redis.moves.filter(({ to }) => to === "open") };
}

test.each([
  { healthy: 10, broken: 2, everyMs: 200 },
  { healthy: 10, broken: 2, everyMs: 2_000 },
  { healthy: 10, broken: 1, everyMs: 2_000 },
  { healthy: 2, broken: 2, everyMs: 200 },
  { healthy: 2, broken: 1, everyMs: 2_000 },
])(
  `P6: $broken workers with a broken network neither open the breaker of $healthy others nor cut their rate (seed ${seed})`,
  async (options) => {
    const { fleet, limits, openings } = await play(options);
    expect(openings).toEqual([]);
    expect(fleet.redis.state?.ratePerSecond).toBe(limits.ratePerSecond);
    const sent = (isBroken: boolean) =>
      fleet.sent.filter(({ worker }) => Number(worker.slice(1)) >= options.healthy === isBroken);
    // Each broken worker fails a dozen times, with what is in flight, and then tests rarely.
    expect(sent(true).length).toBeLessThan(40 * options.broken);
    expect(sent(false).length).toBeGreaterThan((0.8 * options.healthy * RUN_MS) / options.everyMs);
    for (const [i, { share }] of fleet.workers.entries()) {
      expect(share.health).toBe(i < options.healthy ? "well" : "unwell");
    }
  },
);

test(`P6: a broken worker is paused after an outage of all, and the others resume (seed ${seed})`, async () => {
  const outageMs = [5_000, 20_000] as const;
  const { fleet, openings } = await play({ healthy: 6, broken: 2, everyMs: 50, outageMs });
  expect(openings.length).toBeGreaterThan(0);
  for (const { atMs } of openings) {
    expect(atMs).toBeGreaterThanOrEqual(outageMs[0]);
    expect(atMs).toBeLessThanOrEqual(outageMs[1] + 250);
  }
  const [closed] = fleet.redis.moves.filter(({ to }) => to === "closed");
  for (const [i, { id, share }] of fleet.workers.entries()) {
    expect(share.health).toBe(i < 6 ? "well" : "unwell");
    const next = fleet.sent.find(
      ({ worker, call, atMs }) =>
        worker === id && call.probe !== true && atMs > (closed?.atMs ?? Infinity),
    );
    // Its own test call comes first.
    if (i < 6) expect((next?.atMs ?? Infinity) - (closed?.atMs ?? 0)).toBeLessThan(5_000);
  }
});
