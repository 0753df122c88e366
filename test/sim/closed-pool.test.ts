import { guardLimits, type CallResult } from "@konverge/core";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { isLongRun, seed } from "../support/test-run.ts";
import { answered, callForEver, createVirtualFleet, getCall } from "./virtual-fleet.ts";

const ROUNDS = isLongRun ? 2_000 : 100;
const CLOSE_MS = 20_000;
const RESULTS: readonly CallResult[] = [
  answered(200),
  answered(401),
  answered(429),
  answered(500),
  { kind: "network" },
];

/** Closes a pool at a random time, while calls, Redis and the API server fail at random. */
async function closeOne(roundSeed: number) {
  const random = seededRandom(roundSeed);
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = () => RESULTS[below(RESULTS.length)] ?? answered(200);
  const phaseMs = 500 + below(8_000);
  const phases = Array.from({ length: 20 }, () => (random() < 0.4 ? answered(200) : pick()));
  const fleet = createVirtualFleet({
    limits: guardLimits({}),
    workers: 1 + below(3),
    seed: roundSeed,
    probes: random() < 0.8,
    network: { delayMs: [0.1, 0.5 + below(400)], lostAnswers: random() < 0.3 ? 0.2 : 0 },
    server: ({ atMs }) => ({
      result: phases[Math.floor(atMs / phaseMs) % phases.length] ?? answered(200),
      tookMs: 1 + below(3_000),
    }),
  });
  for (const worker of fleet.workers) {
    for (let caller = 0; caller < 4; caller += 1) {
      callForEver(worker, () => ({ call: getCall, thinkMs: below(200) }));
    }
  }
  for (let outage = 0; outage < 3; outage += 1) {
    fleet.clock.schedule(below(CLOSE_MS), () => fleet.outage(below(10_000)));
  }
  const [worker] = fleet.workers;
  if (worker === undefined) throw new Error("the fleet has no worker");
  const closedAtMs = below(CLOSE_MS);
  await fleet.clock.run(closedAtMs);
  worker.share.close();
  const timers = worker.poolTimers;
  await fleet.clock.run(closedAtMs + 60_000);
  return {
    timers: [timers, worker.poolTimers],
    waiting: worker.share.waiting,
    late: fleet.sent.filter((call) => call.worker === worker.id && call.atMs > closedAtMs),
  };
}

test(`P6: a closed token pool leaves no timer, no waiting call, and sends no probe (seed ${seed})`, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const closed = await closeOne(seed + round);
    expect(closed, `seed ${seed + round}`).toEqual({ timers: [0, 0], waiting: 0, late: [] });
  }
});
