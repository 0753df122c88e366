import { bucketSize, guardLimits, type CallResult } from "@konverge/core";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import {
  answered,
  callForEver,
  createVirtualFleet,
  getCall,
  type Sent,
  type VirtualFleet,
  type VirtualServer,
  type VirtualWorker,
} from "./virtual-fleet.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const timeout = 600_000;
const PROBE_MS = 5_000;
/** Messages and calls with a latency of some ms. */
const SLACK_MS = 250;
const network: CallResult = { kind: "network" };

const crowd = (fleet: VirtualFleet, callers: number) => {
  for (const worker of fleet.workers) join(worker, callers);
};
function join(worker: VirtualWorker, callers: number): void {
  for (let i = 0; i < callers; i += 1) callForEver(worker, () => ({ call: getCall }));
}

/** Returns the maximum of overlapping calls. A call is in flight until its end, its process's crash or its deadline. */
function mostAtOnce(calls: readonly Sent[]): number {
  const edges = calls.flatMap(({ atMs, endMs }) => [
    { ms: atMs, by: 1 },
    { ms: Math.min(endMs, atMs + PROBE_MS), by: -1 },
  ]);
  let [now, most] = [0, 0];
  for (const { by } of edges.toSorted((a, b) => a.ms - b.ms || a.by - b.by)) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}

test(
  `P6 B2: never two probes under way, though probers crash, stall and hear late (seed ${seed})`,
  { timeout },
  async () => {
    const sums = { probes: 0, crashed: 0, stalled: 0, openings: 0 };
    for (let run = 0; run < (isLongRun ? 150 : 10); run += 1) {
      const random = seededRandom(seed + run);
      const ticketed = new Set<number>();
      const server: VirtualServer = ({ call, worker: id, atMs }) => {
        if (atMs < 2_000) return { result: answered(200), tookMs: 2 };
        if (call.probe !== true) return { result: network, tookMs: 1 };
        // After a late close message, the call is sent with a token, like any other.
        if (fleet.redis.state?.mode === "halfOpen") ticketed.add(fleet.sent.length);
        const worker = fleet.workers.find((one) => one.id === id) as VirtualWorker;
        const fate = random();
        if (fate < 0.3) {
          sums.crashed += 1;
          fleet.clock.schedule(random() * 2_000, () => {
            worker.crash();
            join(fleet.addWorker(), 2);
          });
        } else if (fate < 0.5) {
          sums.stalled += 1;
          fleet.clock.schedule(random() * 20, () => worker.stall(random() * 15_000));
        }
        // A server that fails for a minute: it rejects, does not respond, or succeeds for one call.
        const kind = random();
        if (kind < 0.4) return { result: { kind: "timeout" }, tookMs: random() * 20_000 };
        if (kind < 0.6) return { result: answered(200), tookMs: random() * 4_000 };
        return { result: kind < 0.8 ? answered(429) : network, tookMs: random() * 2_000 };
      };
      const lostNews = [0, 0.5, 1][run % 3] ?? 0;
      const fleet: VirtualFleet = createVirtualFleet({
        // Long enough for tokens to outlive the slowest message.
        limits: guardLimits({ ratePerSecond: 200, tokenTtlMs: 700, burst: 400 }),
        workers: 12,
        seed: seed + run,
        network: { delayMs: run % 2 === 0 ? [0.1, 0.5] : [20, 300], lostNews, lostAnswers: 0.05 },
        server,
      });
      crowd(fleet, 2);
      // Any process, whether it probes or not.
      const stall = () => {
        fleet.workers[Math.floor(random() * fleet.workers.length)]?.stall(random() * 9_000);
        fleet.clock.schedule(random() * 1_000, stall);
      };
      stall();
      await fleet.clock.run(62_000);
      const probes = fleet.sent.filter((_, i) => ticketed.has(i));
      expect(mostAtOnce(probes)).toBeLessThanOrEqual(1);
      sums.probes += probes.length;
      sums.openings += fleet.redis.moves.filter(({ to }) => to === "open").length;
    }
    expect(Math.min(...Object.values(sums))).toBeGreaterThan(0);
    expect(sums.probes).toBeGreaterThan(30);
  },
);

test(`P6 B2: a worker that stalls after a probe grant does not probe when another may (seed ${seed})`, async () => {
  const fleet = createVirtualFleet({
    limits: guardLimits({ ratePerSecond: 200 }),
    workers: 4,
    seed,
    network: { delayMs: [20, 40] },
    server: ({ call }) => ({ result: network, tookMs: call.probe === true ? PROBE_MS : 1 }),
  });
  crowd(fleet, 2);
  let tickets = 0;
  let seen = "";
  const watch = () => {
    const ticket = fleet.redis.state?.ticket ?? "";
    if (ticket !== "" && ticket !== seen && (tickets += 1) % 2 === 1) {
      fleet.workers.find(({ id }) => ticket.startsWith(`${id}/`))?.stall(8_000);
    }
    seen = ticket;
    fleet.clock.schedule(5, watch);
  };
  watch();
  await fleet.clock.run(60_000);
  const probes = fleet.sent.filter(({ call }) => call.probe === true);
  expect(mostAtOnce(probes)).toBe(1);
  // Each second ticket expires unused.
  expect(probes.length).toBeGreaterThanOrEqual(3);
  expect(tickets - probes.length).toBeGreaterThanOrEqual(3);
});

test(`P6 B7: a probe with Retry-After keeps the breaker open for that time (seed ${seed})`, async () => {
  const retryAfterMs = 20_000;
  const fleet = createVirtualFleet({
    limits: guardLimits({ ratePerSecond: 200 }),
    workers: 4,
    seed,
    server: ({ call }) => ({
      result: call.probe === true ? { ...answered(503), retryAfterMs } : network,
      tookMs: 5,
    }),
  });
  crowd(fleet, 2);
  await fleet.clock.run(60_000);
  const probes = fleet.sent.filter(({ call }) => call.probe === true);
  expect(probes.length).toBeGreaterThanOrEqual(2);
  for (const [i, { atMs }] of probes.entries()) {
    if (i > 0) expect(atMs - (probes[i - 1]?.endMs ?? 0)).toBeGreaterThanOrEqual(retryAfterMs);
  }
});

/** Returns the calls of a saturated fleet after its breaker opened, without probes. */
async function trip(news: "lost" | "delivered") {
  const limits = guardLimits({ ratePerSecond: 500, burst: 60 });
  const fleet = createVirtualFleet({
    limits,
    workers: 40,
    seed,
    network: { delayMs: [0.2, 5], lostNews: news === "lost" ? 1 : 0 },
    // Calls are fast, so that few are in flight; their number is also limited.
    server: ({ atMs }) => ({ result: atMs < 5_000 ? answered(200) : answered(503), tookMs: 5 }),
  });
  crowd(fleet, 20);
  await fleet.clock.run(15_000);
  const [opened] = fleet.redis.moves;
  const trippedMs = opened?.atMs ?? Infinity;
  const calls = fleet.sent.filter(({ call, atMs }) => call.probe !== true && atMs >= 5_000);
  return {
    limits,
    failedBefore: calls.filter(({ atMs }) => atMs < trippedMs).length,
    after: calls.filter(({ atMs }) => atMs >= trippedMs).length,
    trippedAfterMs: trippedMs - 5_000,
  };
}

test(`P6 B6: after the opening, at most promised tokens are used, and with messages hardly any (seed ${seed})`, async () => {
  const lost = await trip("lost");
  const { ratePerSecond, maxWaitMs, tokenTtlMs } = lost.limits;
  expect(lost.after).toBeLessThanOrEqual((ratePerSecond * (maxWaitMs + tokenTtlMs)) / 1_000);
  const delivered = await trip("delivered");
  // The rate during the latency of messages, 5 ms, plus one lease.
  expect(delivered.after).toBeLessThanOrEqual((ratePerSecond * 5) / 1_000 + 64);
  for (const { failedBefore, trippedAfterMs } of [lost, delivered]) {
    expect(failedBefore).toBeGreaterThan(0);
    expect(trippedAfterMs).toBeLessThan(1_000);
  }
});

test(
  `P6 B8: it closes soon after the server is well, however long it was away (seed ${seed})`,
  { timeout },
  async () => {
    let closings = 0;
    for (let run = 0; run < (isLongRun ? 150 : 8); run += 1) {
      const random = seededRandom(seed + run);
      const healedMs = 2_000 + random() * (run % 2 === 0 ? 3_000 : 60_000);
      const isSilent = run % 4 === 3;
      const fleet = createVirtualFleet({
        limits: guardLimits({ ratePerSecond: 200 }),
        workers: 1 + Math.floor(random() * 30),
        seed: seed + run,
        network: { delayMs: [0.2, 20], lostNews: run % 3 === 0 ? 1 : 0 },
        server: ({ atMs, call }) => {
          if (atMs < 1_000 || atMs >= healedMs) return { result: answered(200), tookMs: 5 };
          return isSilent
            ? { result: { kind: "timeout" }, tookMs: call.probe === true ? 60_000 : 1_000 }
            : { result: network, tookMs: 1 };
        },
      });
      crowd(fleet, 2);
      await fleet.clock.run(healedMs + 15_000);
      const { moves } = fleet.redis;
      const last = moves.findLast(({ to }) => to === "open");
      const closed = moves.filter(({ to, atMs }) => to === "closed" && atMs >= healedMs);
      // Too short to be detected.
      if (last === undefined) continue;
      expect(closed).toHaveLength(1);
      const closedMs = closed[0]?.atMs ?? Infinity;
      // An earlier probe may still fail at its deadline.
      expect(last.atMs).toBeLessThanOrEqual(healedMs + (isSilent ? PROBE_MS : 0) + SLACK_MS);
      const openMs = last.untilMs - last.atMs;
      expect(openMs).toBeLessThanOrEqual(
        1.25 * Math.min(5_000, 1_000 * 2 ** (moves.filter(({ to }) => to === "open").length - 1)),
      );
      // Processes spread their probes over a second.
      const dueMs = Math.max(healedMs, last.untilMs);
      expect(closedMs - dueMs).toBeLessThanOrEqual(1_000 + SLACK_MS);
      closings += 1;
    }
    expect(closings).toBeGreaterThan(3);
  },
);

test.each([
  { workers: 1, thinkMs: 3_000 },
  { workers: 30, thinkMs: 3_000 },
  { workers: 300, thinkMs: 3_000 },
  { workers: 100, thinkMs: 0 },
  { workers: 300, thinkMs: 0 },
])(
  `after an outage, $workers workers with pauses of $thinkMs ms have the full rate within 11 s (seed ${seed})`,
  { timeout },
  async ({ workers, thinkMs }) => {
    const [brokenMs, healedMs] = [3_000, 10_000];
    const ratePerSecond = 20;
    const fleet = createVirtualFleet({
      limits: guardLimits({ ratePerSecond }),
      workers,
      seed,
      server: ({ atMs }) => ({
        result: atMs >= brokenMs && atMs < healedMs ? network : answered(200),
        tookMs: 20,
      }),
    });
    // After a pause, most reports come without a request. The callers together want four times the rate, or more.
    const callers = Math.max(1, Math.ceil((4 * ratePerSecond * thinkMs) / 1_000 / workers));
    for (const worker of fleet.workers) {
      for (let i = 0; i < callers; i += 1) {
        callForEver(worker, () => ({ call: getCall, thinkMs: 2 * thinkMs * fleet.random() }));
      }
    }
    await fleet.clock.run(healedMs + 30_000);
    const closedMs = fleet.redis.moves.findLast(({ to }) => to === "closed")?.atMs ?? Infinity;
    // A pause of at most 5 s with its jitter, and the probe's; then the rate rises by a tenth per second, from a fifth.
    expect(closedMs - healedMs).toBeLessThanOrEqual(1.25 * 5_000 + 1_000 + SLACK_MS);
    const [fromMs, windowMs] = [closedMs + 11_000, 8_000];
    const calls = fleet.sent.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + windowMs);
    expect(calls.length).toBeGreaterThanOrEqual((0.95 * ratePerSecond * windowMs) / 1_000);
    expect(fleet.redis.state?.ratePerSecond).toBe(ratePerSecond);
  },
);

/** Keys that call until success, with full jitter between tries. */
async function retry(
  worker: VirtualWorker,
  random: () => number,
  onDone: () => void,
  tries = 0,
): Promise<void> {
  const end = await worker.call({ ...getCall, priority: tries === 0 ? "event" : "retry" });
  if (end.kind === "sent" && end.result.kind === "response" && end.result.status === 200) {
    onDone();
    return;
  }
  const refused = end.kind === "refused" ? (end.error as { retryAfterMs?: number }) : {};
  const afterMs = refused.retryAfterMs ?? random() * Math.min(30_000, 250 * 2 ** tries);
  worker.schedule(afterMs, () => void retry(worker, random, onDone, tries + 1));
}

test.each([
  { forMs: 100, ratePerSecond: 500, burst: 1_000 },
  { forMs: 4_000, ratePerSecond: 500, burst: 1_000 },
  { forMs: 30_000, ratePerSecond: 500, burst: 1_000 },
  { forMs: 4_000, ratePerSecond: 100, burst: 200 },
  { forMs: 4_000, ratePerSecond: 50, burst: 60 },
])(
  `P5, P6 thunder: 1,000 calls fail at once, for $forMs ms, and no second after that exceeds $ratePerSecond/s by more than a lease (seed ${seed})`,
  async ({ forMs, ...limits }) => {
    const [beginMs, healedMs] = [40_000, 40_000 + forMs];
    const fleet = createVirtualFleet({
      limits: guardLimits(limits),
      workers: 20,
      seed,
      server: ({ atMs }) => ({
        result: atMs >= beginMs && atMs < healedMs ? answered(503) : answered(200),
        tookMs: 20,
      }),
    });
    // First a high load, so that many calls in flight are usual; then idle, so that the bucket is full.
    for (const worker of fleet.workers) for (let i = 0; i < 64; i += 1) void worker.call(getCall);
    await fleet.clock.run(beginMs);
    let done = 0;
    for (const worker of fleet.workers) {
      for (let i = 0; i < 50; i += 1) void retry(worker, fleet.random, () => (done += 1));
    }
    await fleet.clock.run(healedMs + 120_000);
    expect(done).toBe(1_000);
    const afterMs = fleet.sent.filter(({ atMs }) => atMs >= healedMs).map(({ atMs }) => atMs);
    const failed = fleet.sent.filter(({ atMs }) => atMs >= beginMs && atMs < healedMs).length;
    let most = 0;
    for (let first = 0, last = 0; last < afterMs.length; last += 1) {
      while ((afterMs[last] ?? 0) - (afterMs[first] ?? 0) >= 1_000) first += 1;
      most = Math.max(most, last - first + 1);
    }
    expect(failed).toBeGreaterThan(0.5 * Math.min(1_000, bucketSize(guardLimits(limits))));
    expect(most).toBeLessThanOrEqual(limits.ratePerSecond + 64);
  },
);
