import { simulateBrownout, type BrownoutResult } from "../sim/brownout.ts";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import type { BenchOptions, Figure } from "./measure.ts";

const FAULTS = [
  { name: "brownout, 2 of 20 seats for 20 s", faultSeats: 2 },
  { name: "outage of 20 s", faultSeats: 0 },
] as const;
const SEED = 7;

/** Simulates 1,000 workers and 100,000 keys with the guard's production code on a virtual clock, without network and Redis. */
export async function benchSim({ log }: BenchOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { name, faultSeats } of FAULTS) {
    log(`sim: ${name}`);
    const run = (policy: "guard" | "jitter") =>
      simulateBrownout({
        workers: 1_000,
        keys: 100_000,
        eventsPerSecond: 140,
        policy,
        faultSeats,
        fromMs: 30_000,
        toMs: 50_000,
        endMs: 150_000,
        rate: 180,
        burst: 60,
        random: seededRandom(SEED),
      });
    figures.push(...figuresOf(name, await run("guard"), await run("jitter")));
  }
  return figures;
}

/** Reports a run that never recovered as -1. */
const recovery = ({ recoveredMs }: BrownoutResult) => recoveredMs ?? -1;

function figuresOf(name: string, guard: BrownoutResult, jitter: BrownoutResult): Figure[] {
  const common = { suite: "sim", case: name, peerName: "jittered retries alone" };
  const figure = (
    metric: string,
    unit: string,
    read: (result: BrownoutResult) => number,
  ): Figure => ({
    ...common,
    metric,
    unit,
    ours: read(guard),
    peer: read(jitter),
    ratio: null,
    goal: null,
    ok: true,
  });
  const sent = guard.sentDuring / jitter.sentDuring;
  const recoveredMs = guard.recoveredMs ?? Infinity;
  return [
    {
      ...figure("calls during the fault", "calls", (run) => run.sentDuring),
      ratio: Math.round(sent * 1_000) / 1_000,
      goal: 0.05,
      ok: sent <= 0.05,
    },
    {
      ...figure("from the fault's end to 85 % good responses; -1: never", "ms", recovery),
      ok: recoveredMs <= 15_000,
    },
    figure("most calls in a second", "calls", (run) => run.peakPerSecond),
    figure("calls per event", "calls", (run) => run.sentPerEvent),
    figure("late keys at the end", "keys", (run) => run.pendingKeys),
  ];
}
