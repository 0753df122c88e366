import { seeded } from "./random.ts";

/** How a call of a handler fails. `timeout` and `reset` have no response. */
export type FailedAnswer = 409 | 429 | 500 | 503 | 504 | "timeout" | "reset";

/**
 * A fault of one run. `call` and `event` count the calls of handlers and the watch events of workers in the whole run, from 1.
 * `landed`: the API server executed the call before it failed.
 */
export type SimulatedFault =
  /** The worker dies at a call, before or after the API server executes it, and another starts. */
  | {
      readonly kind: "crash";
      readonly call: number;
      readonly when: "before" | "after";
      readonly downMs: number;
    }
  /** A call fails. A 409 is returned to the first update with a resource version at or after this call. */
  | {
      readonly kind: "fail";
      readonly call: number;
      readonly answer: FailedAnswer;
      readonly landed: boolean;
    }
  /** A call takes long: in a webhook before its effect, or in the network after it. */
  | {
      readonly kind: "slow";
      readonly call: number;
      readonly when: "before" | "after";
      readonly ms: number;
    }
  /** The worker is suspended at a call for longer than its lease, and another takes the key. */
  | {
      readonly kind: "suspend";
      readonly call: number;
      readonly when: "before" | "after";
      readonly ms: number;
    }
  /** A read that accepts older versions gets the oldest that it accepts. */
  | { readonly kind: "stale"; readonly call: number }
  /** The watches of a worker deliver an event and all later ones late. */
  | { readonly kind: "late"; readonly event: number; readonly ms: number }
  /** A watch breaks before an event, and its history is gone: the worker lists again, and misses events in between. */
  | { readonly kind: "gap"; readonly event: number }
  /** The scenario continues at a call, without waiting for the controllers. */
  | { readonly kind: "early"; readonly call: number }
  /** The garbage collector and the other controllers of the cluster take long. */
  | { readonly kind: "collect"; readonly ms: number }
  /** Response times and the order of simultaneous events are random. */
  | { readonly kind: "timing"; readonly seed: number };

export type FaultKind = SimulatedFault["kind"];

export const FAULT_KINDS = [
  "crash",
  "fail",
  "slow",
  "suspend",
  "stale",
  "late",
  "gap",
  "early",
  "collect",
  "timing",
] as const satisfies readonly FaultKind[];

/** How often the kinds are drawn. */
const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  crash: 6,
  fail: 6,
  slow: 2,
  suspend: 3,
  stale: 1,
  late: 4,
  gap: 2,
  early: 5,
  collect: 1,
  timing: 2,
};

const ANSWERS: readonly FailedAnswer[] = [409, 429, 500, 503, 504, "timeout", "reset"];

/** The number of calls and events of a run without faults. */
export interface FaultRange {
  readonly calls: number;
  readonly events: number;
}

/** Draws the faults of a seed: mostly one, at most four. */
export function drawFaults(
  seed: number,
  range: FaultRange,
  kinds: readonly FaultKind[] = FAULT_KINDS,
): SimulatedFault[] {
  const random = seeded(seed);
  const share = random();
  const count = share < 0.55 ? 1 : share < 0.8 ? 2 : share < 0.93 ? 3 : 4;
  return Array.from({ length: count }, () => drawFault(pick(kinds, random), range, random));
}

function pick(kinds: readonly FaultKind[], random: () => number): FaultKind {
  const sum = kinds.reduce((total, kind) => total + WEIGHTS[kind], 0);
  let rest = random() * sum;
  for (const kind of kinds) {
    rest -= WEIGHTS[kind];
    if (rest < 0) return kind;
  }
  return kinds[0] ?? "crash";
}

function drawFault(kind: FaultKind, range: FaultRange, random: () => number): SimulatedFault {
  const below = (limit: number) => Math.floor(random() * limit);
  // Faults cause further calls, which can fail as well.
  const call = 1 + below(Math.ceil(range.calls * 1.2) + 2);
  const event = 1 + below(Math.ceil(range.events * 1.2) + 1);
  const when = random() < 0.5 ? "before" : "after";
  switch (kind) {
    case "crash":
      return { kind, call, when, downMs: [10, 500, 3_000, 15_000][below(4)] ?? 10 };
    case "fail": {
      const answer = ANSWERS[below(ANSWERS.length)] ?? 500;
      const canLand = answer !== 409 && answer !== 429 && answer !== 503;
      return { kind, call, answer, landed: canLand && random() < 0.6 };
    }
    case "slow":
      return { kind, call, when, ms: [50, 500, 5_000, 20_000][below(4)] ?? 50 };
    case "suspend":
      return { kind, call, when, ms: 11_000 + below(30_000) };
    case "late":
      return { kind, event, ms: [20, 200, 2_000, 20_000][below(4)] ?? 20 };
    case "gap":
      return { kind, event };
    case "stale":
    case "early":
      return { kind, call };
    case "collect":
      return { kind, ms: [1_000, 20_000][below(2)] ?? 1_000 };
    case "timing":
      return { kind, seed: below(1_000_000) };
  }
}

/** Describes a fault in one line. */
export function describeFault(fault: SimulatedFault): string {
  switch (fault.kind) {
    case "crash":
      return `crash ${fault.when} call ${fault.call}; another worker starts after ${seconds(fault.downMs)}`;
    case "fail": {
      const { answer, landed, call } = fault;
      if (answer === 409) return `response 409 for the first update from call ${call} on`;
      const effect = landed ? "executed" : "not executed";
      const what = typeof answer === "number" ? `response ${answer}` : answer;
      return `${what} for call ${call}, which was ${effect}`;
    }
    case "slow":
      return `call ${fault.call} is delayed by ${seconds(fault.ms)} ${fault.when} its effect`;
    case "suspend":
      return `the worker is suspended ${fault.when} call ${fault.call} for ${seconds(fault.ms)}; another takes its keys`;
    case "stale":
      return `call ${fault.call} reads the oldest version that it accepts`;
    case "late":
      return `watch events from event ${fault.event} on arrive ${seconds(fault.ms)} late`;
    case "gap":
      return `the watch of event ${fault.event} breaks, and the worker lists again`;
    case "early":
      return `the scenario continues at call ${fault.call} without waiting`;
    case "collect":
      return `the garbage collector takes ${seconds(fault.ms)}`;
    case "timing":
      return `random response times and order (${fault.seed})`;
  }
}

const seconds = (ms: number): string => `${ms / 1_000} s`;
