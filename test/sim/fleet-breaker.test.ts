import { randomInt } from "node:crypto";
import { guardLimits, type CallResult } from "@konverge/core";
import { expect, test } from "vitest";
import { seededRandom } from "./seeded-random.ts";
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

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const timeout = 600_000;
const PROBE_MS = 5_000;
const network: CallResult = { kind: "network" };

const crowd = (fleet: VirtualFleet, callers: number) => {
  for (const worker of fleet.workers) join(worker, callers);
};
function join(worker: VirtualWorker, callers: number): void {
  for (let i = 0; i < callers; i += 1) callForEver(worker, () => ({ call: getCall }));
}

/** How long calls overlap at most: one is under way until it ends, or its process dies, or its deadline. */
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
    for (let run = 0; run < (isLong ? 300 : 10); run += 1) {
      const random = seededRandom(seed + run);
      const ticketed = new Set<number>();
      const server: VirtualServer = ({ call, worker: id, atMs }) => {
        if (atMs < 2_000) return { result: answered(200), tookMs: 2 };
        if (call.probe !== true) return { result: network, tookMs: 1 };
        // Whoever hears late that it was closed meanwhile sends it with a token, like any other call.
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
        // A server that is away for a minute: it refuses, is silent, or has a good moment for one call.
        const kind = random();
        if (kind < 0.4) return { result: { kind: "timeout" }, tookMs: random() * 20_000 };
        if (kind < 0.6) return { result: answered(200), tookMs: random() * 4_000 };
        return { result: kind < 0.8 ? answered(429) : network, tookMs: random() * 2_000 };
      };
      const lostNews = [0, 0.5, 1][run % 3] ?? 0;
      const fleet: VirtualFleet = createVirtualFleet({
        limits: guardLimits({ ratePerSecond: 200 }),
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
      expect(mostAtOnce(probes)).toBe(1);
      sums.probes += probes.length;
      sums.openings += fleet.redis.moves.filter(({ to }) => to === "open").length;
    }
    console.log(sums);
  },
);

test(`P6 B2: who falls asleep while it is told that it may probe does not begin when another may (seed ${seed})`, async () => {
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
