import {
  CLASSIC_GUARD_LIMITS,
  guardLimits,
  type CallPriority,
  type GateCall,
  type GuardLimits,
} from "@konverge/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  callForEver,
  createVirtualFleet,
  getCall,
  type VirtualFleet,
  type VirtualWorker,
} from "./virtual-fleet.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const timeout = 600_000;
/** An election renews its Lease every 2 s, and loses it after 10 s. */
const RENEW_MS = 2_000;
const LONGEST_GAP_MS = 5_000;
const WINDOW_MS = 10_000;
/** The first round: all processes start at once, with an empty bucket. */
const START_MS = 2_000;
const AGED_MS = 10_000;

const limitsOf = (ratePerSecond: number): GuardLimits =>
  ratePerSecond === CLASSIC_GUARD_LIMITS.ratePerSecond
    ? CLASSIC_GUARD_LIMITS
    : guardLimits({ ratePerSecond });

/** A fleet with limits in Redis, as after the start of its workers. */
function startFleet(limits: GuardLimits, workers: number): VirtualFleet {
  const fleet = createVirtualFleet({ limits, workers, seed });
  fleet.redis.configure();
  return fleet;
}

function lead(worker: VirtualWorker): void {
  const call: GateCall = { verb: "update", resource: "leases", priority: "critical" };
  callForEver(worker, () => ({ call, thinkMs: RENEW_MS }));
}

function crowd(worker: VirtualWorker, callers: number, next: () => GateCall = () => getCall): void {
  for (let i = 0; i < callers; i += 1) callForEver(worker, () => ({ call: next() }));
}

/** Returns the longest time without a critical call, or without any other call, of these workers. */
function longestGap(
  { clock, sent }: VirtualFleet,
  workers: readonly VirtualWorker[],
  kind: "critical" | "other",
): number {
  const gaps = workers.map(({ id }) => {
    const own = sent.filter(
      ({ worker, call }) =>
        worker === id && (call.priority === "critical") === (kind === "critical"),
    );
    const times = [0, ...own.map(({ atMs }) => atMs), clock.nowMs];
    return Math.max(...times.slice(1).map((atMs, i) => atMs - (times[i] ?? 0)));
  });
  return Math.max(...gaps);
}

/** Returns the fewest and most calls of a worker within any window of this length, without critical calls. */
function extremes({ clock, sent }: VirtualFleet, { id }: VirtualWorker, windowMs: number) {
  const times = sent
    .filter(({ worker, call }) => worker === id && call.priority !== "critical")
    .map(({ atMs }) => atMs);
  const counts: number[] = [];
  for (let fromMs = START_MS; fromMs + windowMs <= clock.nowMs; fromMs += 250) {
    counts.push(times.filter((atMs) => atMs >= fromMs && atMs < fromMs + windowMs).length);
  }
  return { fewest: Math.min(...counts), most: Math.max(...counts) };
}

const asksPerCall = ({ workers, sent }: VirtualFleet) =>
  workers.reduce((sum, { share }) => sum + share.counts.asks, 0) / sent.length;

test.each([
  { workers: 12, callers: 50, rate: 20 },
  { workers: 20, callers: 20, rate: 50 },
  { workers: 100, callers: 1, rate: 10 },
  { workers: 100, callers: 10, rate: 10 },
  { workers: 12, callers: 50, rate: 300 },
  { workers: 4, callers: 48, rate: 10 },
])(
  `leaders renew within 5 s beside $workers workers with $callers callers at $rate/s (seed ${seed})`,
  { timeout },
  async ({ workers, callers, rate }) => {
    const fleet = startFleet(limitsOf(rate), workers);
    const leaders = fleet.workers.filter((_, i) => i % Math.ceil(workers / 10) === 0);
    leaders.forEach(lead);
    for (const worker of fleet.workers) crowd(worker, callers);
    await fleet.clock.run(60_000);
    expect(longestGap(fleet, leaders, "critical")).toBeLessThanOrEqual(LONGEST_GAP_MS);
  },
);

test(`a leader renews within 5 s while calls hang and fill every slot (seed ${seed})`, async () => {
  const fleet = createVirtualFleet({
    limits: limitsOf(50),
    workers: 2,
    seed,
    maxInFlight: 8,
    server: ({ call }) => ({
      result: { kind: "response", status: 200 },
      tookMs: call.priority === "critical" ? 5 : 30_000,
    }),
  });
  const [leader] = fleet.workers as [VirtualWorker];
  for (const worker of fleet.workers) crowd(worker, 50);
  await fleet.clock.run(5_000);
  lead(leader);
  await fleet.clock.run(60_000);
  const renewals = fleet.sent.filter(({ call }) => call.priority === "critical");
  expect(renewals.length).toBeGreaterThan(20);
  expect(Math.max(...renewals.map(({ waitedMs }) => waitedMs))).toBeLessThan(LONGEST_GAP_MS);
});

test.each([1, 10])(
  `100 processes with %i callers share 10/s evenly, with at most 1.5 round trips per call (seed ${seed})`,
  async (callers) => {
    const fleet = startFleet(CLASSIC_GUARD_LIMITS, 100);
    for (const worker of fleet.workers) crowd(worker, callers);
    await fleet.clock.run(40_000);
    expect(fleet.sent.length).toBeGreaterThanOrEqual(395);
    expect(asksPerCall(fleet)).toBeLessThanOrEqual(1.5);
    for (const worker of fleet.workers) {
      const { fewest, most } = extremes(fleet, worker, WINDOW_MS);
      // One call each, or two where both ends of the window meet one.
      expect(fewest).toBeGreaterThanOrEqual(1);
      expect(most).toBeLessThanOrEqual(2);
    }
  },
);

const scenarios = fc.record({
  rate: fc.constantFrom(10, 25, 50, 200, ...(isLongRun ? [500, 2_000] : [])),
  workers: fc.integer({ min: 2, max: isLongRun ? 120 : 40 }),
  /** The callers of each process in turn. */
  callers: fc.array(fc.constantFrom(1, 2, 5, 20, 60), { minLength: 1, maxLength: 3 }),
  leaders: fc.constantFrom(0, 1, 3),
  /** Each call is of one of these classes. */
  classes: fc.constantFrom<(readonly CallPriority[])[]>(
    ["event"],
    ["interactive", "event"],
    ["resync"],
    ["interactive", "event", "retry", "resync"],
  ),
  delayMs: fc.constantFrom<[number, number][]>([0.1, 0.5], [1, 20]),
});
type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never;

/** The share of each process by the rules: turns alternate, and a turn is at most 100 ms of the rate. */
function expectedShares({ rate, workers, callers, leaders }: Scenario) {
  const stretch = Math.max(1, Math.floor(rate * 0.1));
  const turns = Array.from({ length: workers }, (_, i) =>
    Math.min(callers[i % callers.length] ?? 1, stretch),
  );
  const round = turns.reduce((sum, turn) => sum + turn, 0);
  const free = rate - (Math.min(leaders, workers) * 1_000) / RENEW_MS;
  const roundMs = (round * 1_000) / free;
  return { roundMs, turns, perMs: turns.map((turn) => turn / roundMs) };
}

function play({ scenario, random }: { scenario: Scenario; random: number }): VirtualFleet {
  const { rate, workers, callers, leaders, classes, delayMs } = scenario;
  const network = { delayMs };
  const fleet = createVirtualFleet({ limits: limitsOf(rate), workers, seed: random, network });
  fleet.redis.configure();
  const next = (): GateCall => ({
    ...getCall,
    priority: classes[Math.floor(fleet.random() * classes.length)] ?? "event",
  });
  fleet.workers.slice(0, leaders).forEach(lead);
  fleet.workers.forEach((worker, i) => crowd(worker, callers[i % callers.length] ?? 1, next));
  return fleet;
}

test(
  `each process of a fleet with even demand has its share within a factor of 2, and none of any fleet starves (seed ${seed})`,
  { timeout },
  async () => {
    const sums = { calls: 0, asks: 0, longestGapMs: 0, shares: 0 };
    for (let run = 0; run < (isLongRun ? 30 : 4); run += 1) {
      const [drawn] = fc.sample(scenarios, { seed: seed + run, numRuns: 1 });
      if (drawn === undefined) continue;
      const isEven = run % 2 === 0;
      const scenario: Scenario = isEven
        ? { ...drawn, callers: drawn.callers.slice(0, 1), classes: ["interactive", "event"] }
        : drawn;
      const what = JSON.stringify({ ...scenario, seed: seed + run });
      const { roundMs, perMs, turns } = expectedShares(scenario);
      const windowMs = Math.max(WINDOW_MS, 2 * roundMs);
      const fleet = play({ scenario, random: seed + run });
      await fleet.clock.run(START_MS + AGED_MS + 3 * windowMs);
      const gapMs = longestGap(fleet, fleet.workers.slice(0, scenario.leaders), "critical");
      expect(gapMs, what).toBeLessThanOrEqual(LONGEST_GAP_MS);
      sums.calls += fleet.sent.length;
      sums.asks += asksPerCall(fleet) * fleet.sent.length;
      sums.longestGapMs = Math.max(sums.longestGapMs, gapMs);
      const idleMs = longestGap(fleet, fleet.workers, "other");
      expect(idleMs, what).toBeLessThanOrEqual(AGED_MS + 2 * roundMs + 2_000);
      // Higher classes and aged calls are served first, wherever they wait. Processes with fewer callers leave tokens to others.
      if (!isEven) continue;
      for (const [i, worker] of fleet.workers.entries()) {
        const { fewest, most } = extremes(fleet, worker, windowMs);
        const share = (perMs[i] ?? 0) * windowMs;
        const turn = turns[i] ?? 1;
        expect(fewest, `${worker.id} of ${what}`).toBeGreaterThanOrEqual(share / 2 - turn);
        expect(most, `${worker.id} of ${what}`).toBeLessThanOrEqual(2 * share + turn);
        sums.shares += 1;
      }
    }
    console.log(sums);
    expect(sums.shares).toBeGreaterThan(0);
  },
);

test(`a process with low classes only is served when its calls have aged, then in turn (seed ${seed})`, async () => {
  const fleet = startFleet(limitsOf(50), 10);
  const [low, ...others] = fleet.workers as [VirtualWorker, ...VirtualWorker[]];
  crowd(low, 5, () => ({ ...getCall, priority: "resync" }));
  for (const worker of others) crowd(worker, 20);
  await fleet.clock.run(60_000);
  const calls = fleet.sent.filter(({ worker }) => worker === low.id);
  expect(calls.length).toBeGreaterThan(10);
  expect(Math.max(...calls.map(({ waitedMs }) => waitedMs))).toBeLessThanOrEqual(AGED_MS + 3_000);
});
