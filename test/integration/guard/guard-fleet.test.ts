import { afterEach, beforeEach, expect, test } from "vitest";
import { isKonvergeError } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import type { GuardChildConfig } from "./guard-child.ts";
import {
  eventsOf,
  expectBound,
  Fleet,
  largestExcess,
  monotonicMs,
  startCountingServer,
  type CountingServer,
  type FleetWorker,
} from "./guard-harness.ts";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { until } from "../../support/until.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const redisUrl = process.env["REDIS_URL"] ?? "";

const RATE = 200;
const BURST = 120;
const limits = { ratePerSecond: RATE, burst: BURST };
const WORKERS = 8;

let server: CountingServer;
let fleet: Fleet;
let serial = 0;
beforeEach(async () => {
  server = await startCountingServer();
  fleet = new Fleet({ redisUrl, cluster: `fleet-${serial++}`, serverUrl: server.url, limits });
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const startAll = (count: number, own: (n: number) => Partial<GuardChildConfig> = () => ({})) =>
  Promise.all(Array.from({ length: count }, (_, n) => fleet.start(own(n))));
const callsOf = ({ id }: FleetWorker, sinceMs = 0) =>
  server.calls.filter((call) => call.worker === id && call.arrivedMs >= sinceMs);
const everybodyCalls = (sinceMs = monotonicMs()) =>
  until("every worker calls", () =>
    fleet.workers.every((worker) => callsOf(worker, sinceMs).length > 0),
  );
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function readBreaker() {
  await using control = openGuardControl({
    redis: { url: redisUrl, deadlineMs: PATIENT_MS },
    prefix: fleet.prefix,
  });
  // It waits for Redis less than a busy machine may take.
  const view = await until("an answer of Redis", () =>
    control.read(`fleet-${serial - 1}`).catch((error: unknown) => {
      if (isKonvergeError(error) && error.code === "redis_unavailable") return undefined;
      throw error;
    }),
  );
  return view;
}

test(`P5: 8 processes stay below rate * T + burst in every window, killed and stopped at random (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  await startAll(WORKERS);
  fleet.order({ lanes: 8 });
  await everybodyCalls();

  const stopped = new Set<FleetWorker>();
  const resuming: Promise<unknown>[] = [];
  const rounds = isLongRun ? 100 : 24;
  for (let round = 0; round < rounds; round++) {
    const victim = pick(fleet.workers);
    switch (pick(["kill", "stop", "stop", "idle", "burst", "burst", "calm"])) {
      case "kill":
        await victim.kill();
        resuming.push(fleet.start().then((worker) => worker.order({ lanes: 8 })));
        break;
      case "stop": {
        if (stopped.has(victim)) break;
        stopped.add(victim);
        victim.process.kill("SIGSTOP");
        const stoppedMs = 20 + random() * 1_000;
        resuming.push(
          pass(stoppedMs).then(() => {
            stopped.delete(victim);
            return victim.process.kill("SIGCONT");
          }),
        );
        break;
      }
      case "idle":
        // Promised tokens are used up within a second; then the bucket fills in half a second.
        fleet.order({ lanes: 0 });
        await pass(500 + random() * 1_500);
        fleet.order({ lanes: 30 });
        break;
      case "burst":
        fleet.order({ lanes: 30 });
        break;
      case "calm":
        fleet.order({ lanes: 1 });
    }
    await pass(random() * 400);
  }
  await Promise.all(resuming);

  // Once more from a full bucket, then without pause. Without a burst the bound has not been tested: a machine that is
  // busy elsewhere tries again.
  await until("a burst", async () => {
    fleet.order({ lanes: 0 });
    await pass(2_000);
    fleet.order({ lanes: 20 });
    await everybodyCalls();
    const allowedMs = server.calls.map((call) => call.allowedMs);
    return largestExcess(allowedMs, RATE) > BURST / 2;
  });
  expect(fleet.workers).toHaveLength(WORKERS);
  const saturatedMs = monotonicMs();
  const saturated = () => server.calls.filter((call) => call.arrivedMs >= saturatedMs);
  await until("calls of a fleet that has more to do", () => saturated().length >= 600);
  await until("a fair share for each", () => {
    const share = saturated().length / WORKERS;
    return fleet.workers.every((worker) => callsOf(worker, saturatedMs).length > share / 4);
  });
  expectBound(server.calls, limits);
});

test("P6: an outage opens the breaker for all; one probe at a time detects its end, even if the prober is killed", async () => {
  // Half of the guards send the probe themselves; for the others, any call can be the probe.
  const all = await startAll(WORKERS, (n) => ({ ownProbe: n % 2 === 0 }));
  fleet.order({ lanes: 4 });
  await everybodyCalls();

  server.answer = () => 503;
  await until("every worker sees the breaker open", () =>
    all.every((worker) => eventsOf(worker, "breaker").some(({ mode }) => mode === "open")),
  );
  const openMs = Math.max(
    ...all.map((worker) => eventsOf(worker, "breaker").find(({ mode }) => mode === "open")!.atMs),
  );
  const probes = () => server.calls.filter((call) => call.allowedMs > openMs);
  await until("a probe that fails", () => probes().length > 0);

  // The server stops responding; the next prober is killed during its probe.
  server.answer = () => "hang";
  const [hanging] = await until("a probe that hangs", () => {
    const open = server.underWay().filter((call) => call.allowedMs > openMs);
    return open.length > 0 && open;
  });
  const prober = all.find(({ id }) => id === hanging?.worker);
  await prober?.kill();
  await until("the connection of the killed prober ends", () => hanging!.endedMs < Infinity);
  await until("a probe of another", () =>
    probes().some((call) => call.arrivedMs > hanging!.endedMs),
  );

  server.answer = () => 200;
  server.release();
  const left = all.filter((worker) => worker !== prober);
  await until("every worker sees the breaker closed", () =>
    left.every((worker) => eventsOf(worker, "breaker").at(-1)?.mode === "closed"),
  );
  await fleet.start().then((worker) => worker.order({ lanes: 4 }));
  await everybodyCalls();

  expectOneProbeAtATime(all);
  expectBound(server.calls, limits);
  const { transitions } = await readBreaker();
  const moves = transitions.toReversed().map(({ from, to }) => `${from} > ${to}`);
  expect(moves[0]).toBe("closed > open");
  expect(moves.at(-1)).toBe("halfOpen > closed");
  expect(new Set(moves)).toEqual(
    new Set(["closed > open", "open > halfOpen", "halfOpen > open", "halfOpen > closed"]),
  );
});

/** Calls of a worker between its events for start and end of the outage are probes: never two at a time in the fleet. */
function expectOneProbeAtATime(workers: readonly FleetWorker[]): void {
  const probes = workers.flatMap((worker) => {
    const moves = eventsOf(worker, "breaker");
    const fromMs = moves.find(({ mode }) => mode === "open")?.atMs ?? Infinity;
    const toMs =
      moves.find(({ mode, atMs }) => mode === "closed" && atMs > fromMs)?.atMs ?? Infinity;
    return callsOf(worker).filter((call) => call.allowedMs > fromMs && call.allowedMs < toMs);
  });
  expect(probes.length).toBeGreaterThanOrEqual(3);
  for (const probe of probes) {
    const others = probes.filter(
      (other) =>
        other !== probe && other.arrivedMs < probe.endedMs && other.endedMs > probe.arrivedMs,
    );
    expect(others).toEqual([]);
  }
}

test("two workers with different limits: the later limits apply, and both report it", async () => {
  const first = await fleet.start();
  first.order({ lanes: 4 });
  await everybodyCalls();
  const breaker = { failures: 30, calls: 60, failedShare: 0.8, openMs: 500, maxOpenMs: 15_000 };
  const second = await fleet.start({ limits: { ratePerSecond: 50, burst: 40, breaker } });
  second.order({ lanes: 4 });
  const [ours] = await until("the second says so", () => {
    const said = eventsOf(second, "limits");
    return said.length > 0 && said;
  });
  const [theirs] = await until("the first says so", () => {
    const said = eventsOf(first, "limits");
    return said.length > 0 && said;
  });
  const wanted = { by: second.id, limits: { ratePerSecond: 50, burst: 40, breaker } };
  expect(ours).toMatchObject({ ...wanted, ours: true });
  expect(theirs).toMatchObject({ ...wanted, ours: false });
  // Tokens promised under the old limits are due within a second.
  const fromMs = monotonicMs() + 1_100;
  await until(
    "calls under the new limits",
    () => server.calls.filter((call) => call.allowedMs >= fromMs).length >= 75,
  );
  const after = server.calls.map((call) => call.allowedMs).filter((ms) => ms >= fromMs);
  expect(largestExcess(after, 50)).toBeLessThanOrEqual(40);
});

test("rejected credentials and a local network failure pause their worker only; neither opens the breaker", async () => {
  // On a busy machine none but the cut off worker may run into a deadline.
  const [denied, cutOff, ...well] = await startAll(4, () => ({ deadlineMs: 20_000 }));
  fleet.order({ lanes: 2 });
  await everybodyCalls();

  server.answer = (worker) => (worker === denied!.id ? 401 : 200);
  // No server listens on port 1.
  cutOff!.order({ serverUrl: "http://127.0.0.1:1" });
  await until("the refused worker pauses", () =>
    eventsOf(denied!, "health").some(({ health }) => health === "unauthorized"),
  );
  await until("the cut off worker knows that it is alone", () =>
    eventsOf(cutOff!, "health").some(({ health }) => health === "unwell"),
  );
  const whileAwayMs = monotonicMs();
  const during = await readBreaker();
  expect(during.breaker.state).toBe("closed");
  expect(during.workers.failing).toEqual([cutOff!.id]);
  await until("the others go on", () =>
    well.every((worker) => callsOf(worker, whileAwayMs).length > 5),
  );

  server.answer = () => 200;
  cutOff!.order({ serverUrl: server.url });
  await everybodyCalls();
  for (const worker of [denied!, cutOff!]) {
    await until("it is well again", () => eventsOf(worker, "health").at(-1)?.health === "well");
  }
  expect((await readBreaker()).transitions).toEqual([]);
  for (const worker of fleet.workers) expect(eventsOf(worker, "breaker")).toEqual([]);
  expectBound(server.calls, limits);
});
