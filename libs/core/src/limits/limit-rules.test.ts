import * as fc from "fast-check";
import { expect, test } from "vitest";
import { limitRules, type LimitOptions } from "./limit-options.ts";
import {
  askPermit,
  callWaiters,
  LIMIT,
  newLimitState,
  releaseSlot,
  renewSlot,
  type LimitState,
} from "./limit-state.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";

interface Grant {
  readonly atUs: number;
  readonly cost: number;
  readonly waiter: string;
  /** End of the use: released, killed, or aborted before the end of the lease. */
  endUs: number;
}

interface FleetOptions {
  readonly options: LimitOptions;
  readonly waiters: number;
  readonly costs: readonly number[];
  readonly holdUs: readonly number[];
  /** Delay of a waiter after its time, and after a call. */
  readonly latenessUs: readonly number[];
  /** One of so many holders dies; 0: none. */
  readonly killsEvery: number;
  readonly untilUs: number;
}

/** Bounds the work of a fleet. */
const MAX_GRANTS = 300;
const EARLY_US = LIMIT.leaseUs * 0.9;
const RENEW_US = LIMIT.leaseUs / 4;

/** Plays workers that ask, hold, release and die, in virtual time. */
class Fleet {
  readonly grants: Grant[] = [];
  /** Waiters in the order of their first request, per round. */
  readonly asked: string[] = [];
  readonly #options: FleetOptions;
  readonly #state: LimitState = newLimitState();
  readonly #due: { atUs: number; order: number; run: () => void }[] = [];
  readonly #waits = new Map<string, number>();
  #nowUs = 1_000_000_000;
  #order = 0;
  #drawn = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    for (let index = 0; index < options.waiters; index += 1) this.#begin(`w${index}`, 0);
    const endUs = this.#nowUs + options.untilUs;
    for (;;) {
      this.#due.sort((a, b) => a.atUs - b.atUs || a.order - b.order);
      const next = this.#due.shift();
      if (next === undefined || next.atUs > endUs || this.grants.length > MAX_GRANTS) break;
      this.#nowUs = next.atUs;
      next.run();
    }
  }

  get rules() {
    return limitRules(this.#options.options);
  }

  #draw(values: readonly number[]): number {
    this.#drawn += 1;
    return values[(this.#drawn * 7919) % values.length] ?? 0;
  }

  #at(afterUs: number, run: () => void): void {
    this.#order += 1;
    this.#due.push({ atUs: this.#nowUs + afterUs, order: this.#order, run });
  }

  #begin(waiter: string, round: number): void {
    this.#at(0, () => {
      this.asked.push(`${waiter}/${round}`);
      this.#ask(waiter, round);
    });
  }

  #ask(waiter: string, round: number): void {
    this.#waits.delete(`${waiter}/${round}`);
    const cost = this.#draw(this.#options.costs);
    const holder = `${waiter}/${round}/${this.grants.length}`;
    const ask = { waiter: `${waiter}/${round}`, holder, cost, inPlaceUs: 0 };
    const answer = askPermit(this.#state, this.rules, ask, this.#nowUs);
    this.#call();
    if (answer.kind === "granted") {
      this.#hold(waiter, round, { holder, cost });
      return;
    }
    this.#wait(waiter, round, answer.waitUs);
  }

  #wait(waiter: string, round: number, afterUs: number): void {
    this.#order += 1;
    const ticket = this.#order;
    this.#waits.set(`${waiter}/${round}`, ticket);
    this.#at(afterUs + this.#draw(this.#options.latenessUs), () => {
      if (this.#waits.get(`${waiter}/${round}`) === ticket) this.#ask(waiter, round);
    });
  }

  #call(): void {
    for (const name of callWaiters(this.#state, this.rules, this.#nowUs)) {
      const [waiter = "", round = ""] = name.split("/");
      if (this.#waits.has(name)) this.#wait(waiter, Number(round), 0);
    }
  }

  #hold(waiter: string, round: number, { holder, cost }: { holder: string; cost: number }): void {
    const isKilled =
      this.#options.killsEvery > 0 && (this.grants.length + 1) % this.#options.killsEvery === 0;
    const holdUs = this.#draw(this.#options.holdUs);
    const grant: Grant = {
      atUs: this.#nowUs,
      cost,
      waiter: `${waiter}/${round}`,
      endUs: this.#nowUs + holdUs,
    };
    this.grants.push(grant);
    if (isKilled) {
      // A stopped process runs on until its own clock ends the lease. Others notice its lease later.
      grant.endUs = Math.min(grant.endUs, this.#nowUs + EARLY_US);
      this.#at(LIMIT.leaseUs + 1, () => this.#call());
      this.#begin(waiter, round + 1);
      return;
    }
    const renew = () => {
      if (this.#nowUs >= grant.endUs) return;
      if (this.rules.concurrency > 0) {
        expect(renewSlot(this.#state, holder, this.#nowUs)).toBe(true);
        this.#call();
      }
      this.#at(RENEW_US, renew);
    };
    this.#at(RENEW_US, renew);
    this.#at(holdUs, () => {
      releaseSlot(this.#state, holder);
      this.#call();
      this.#begin(waiter, round + 1);
    });
  }
}

/** The largest excess of a window's tokens over the rate. */
function largestExcess(grants: readonly Grant[], intervalUs: number): number {
  let open = 0;
  let best = 0;
  let lastUs = -Infinity;
  for (const { atUs, cost } of grants) {
    open = Math.max(0, open - (atUs - lastUs) / intervalUs) + cost;
    best = Math.max(best, open);
    lastUs = atUs;
  }
  return best;
}

function mostHeld(grants: readonly Grant[]): number {
  const changes = grants
    .filter(({ atUs, endUs }) => endUs > atUs)
    .flatMap(({ atUs, endUs }) => [
      { atUs, by: 1 },
      { atUs: endUs, by: -1 },
    ])
    .toSorted((a, b) => a.atUs - b.atUs || a.by - b.by);
  let held = 0;
  return Math.max(0, ...changes.map(({ by }) => (held += by)));
}

const fleets = fc.record({
  options: fc.oneof(
    fc.record({ rate: fc.constantFrom(1, 10, 333), burst: fc.constantFrom(2, 5, 20) }),
    fc.record({ concurrency: fc.constantFrom(1, 3, 8) }),
    fc.record({
      rate: fc.constantFrom(2, 50),
      burst: fc.constantFrom(2, 10),
      concurrency: fc.constantFrom(1, 4),
    }),
  ),
  waiters: fc.integer({ min: 1, max: 12 }),
  costs: fc.constantFrom([1], [1, 2], [2, 1, 1]),
  holdUs: fc.constantFrom([10_000], [100_000, 200_000], [50_000_000, 1_000_000, 10_000]),
  latenessUs: fc.constantFrom([0], [0, 3_000], [0, 500_000, 5_000_000]),
  killsEvery: fc.constantFrom(0, 0, 3, 7),
  untilUs: fc.constantFrom(10_000_000, 100_000_000),
});

test(`no window exceeds the rate, and no moment the slots (seed ${seed})`, () => {
  fc.assert(
    fc.property(fleets, (options) => {
      const { grants, rules } = new Fleet(options);
      expect(grants.length).toBeGreaterThan(0);
      if (rules.intervalUs > 0) {
        expect(largestExcess(grants, rules.intervalUs)).toBeLessThanOrEqual(rules.burst + 1e-6);
      }
      if (rules.concurrency > 0) expect(mostHeld(grants)).toBeLessThanOrEqual(rules.concurrency);
    }),
    { seed, numRuns: isLong ? 20_000 : 100 },
  );
});

test(`waiters that are in time use a limit fully, in order (seed ${seed})`, () => {
  fc.assert(
    fc.property(fleets, fc.integer({ min: 10, max: 30 }), (drawn, waiters) => {
      const options = {
        ...drawn,
        waiters,
        latenessUs: [0],
        killsEvery: 0,
        costs: [1],
        holdUs: [100_000],
      };
      const fleet = new Fleet(options);
      const { grants, rules } = fleet;
      const grantedUs = new Map(grants.map(({ waiter, atUs }) => [waiter, atUs]));
      // Requests of one moment may pass each other if there is room for all of them. The last moment may be incomplete.
      const endUs = grants.at(-1)?.atUs ?? 0;
      const times = grants.map(({ atUs }) => atUs).filter((atUs) => atUs < endUs);
      const asked = fleet.asked.slice(0, times.length);
      expect(asked.map((waiter) => grantedUs.get(waiter))).toEqual(times);
      const byRate = rules.intervalUs === 0 ? Infinity : options.untilUs / rules.intervalUs;
      const bySlots =
        rules.concurrency === 0 ? Infinity : (options.untilUs / 100_000) * rules.concurrency;
      const byWaiters = (options.untilUs / 100_000) * waiters;
      const possible = Math.min(byRate, bySlots, byWaiters, MAX_GRANTS);
      // Each of the waiting times is rounded up to 1 ms or to 1 us.
      expect(grants.length).toBeGreaterThanOrEqual(0.95 * possible - waiters);
    }),
    { seed, numRuns: isLong ? 2_000 : 40 },
  );
});

test("a late waiter is served before the others", () => {
  const state = newLimitState();
  const rules = limitRules({ concurrency: 1 });
  const ask = (waiter: string, nowUs: number) =>
    askPermit(state, rules, { waiter, holder: waiter, cost: 1, inPlaceUs: 0 }, nowUs).kind;
  expect(ask("a", 1e9)).toBe("granted");
  expect(ask("b", 1e9)).toBe("wait");
  expect(ask("c", 1e9)).toBe("wait");
  expect(ask("d", 1e9)).toBe("wait");
  releaseSlot(state, "a");
  expect(callWaiters(state, rules, 1e9)).toEqual(["b"]);
  const lateUs = 1e9 + LIMIT.graceUs;
  expect(callWaiters(state, rules, lateUs)).toEqual(["c"]);
  expect(ask("c", lateUs)).toBe("granted");
  expect(ask("b", lateUs)).toBe("wait");
  releaseSlot(state, "c");
  expect(callWaiters(state, rules, lateUs)).toEqual(["b"]);
  expect(ask("d", lateUs)).toBe("wait");
  expect(ask("b", lateUs)).toBe("granted");
});

test("a changed rate keeps the debt in tokens, and a smaller burst blocks no request", () => {
  const state = newLimitState();
  const ask = (options: LimitOptions, cost: number, nowUs: number) =>
    askPermit(state, limitRules(options), { waiter: "a", holder: "a", cost, inPlaceUs: 0 }, nowUs);
  expect(ask({ rate: 10, burst: 10 }, 10, 1e9).kind).toBe("granted");
  expect(ask({ rate: 1, burst: 10 }, 1, 1e9)).toEqual({ kind: "wait", waitUs: 1e6 });
  expect(ask({ rate: 1, burst: 1 }, 10, 2e9).kind).toBe("granted");
});
