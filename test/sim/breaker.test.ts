import { BREAKER, guardLimits, type AdmitRequest, type CallResult } from "@konverge/core";
import { admit, newGuardState, type Admission } from "./model/admit.ts";
import { type GuardState } from "./model/guard-state.ts";
import * as fc from "fast-check";
import { quietAsk } from "./quiet-ask.ts";
import { expect, test } from "vitest";
import { openDurationUs } from "./model/opening-rules.ts";
import { createOutcomeTally } from "../../libs/guard/src/outcome-tally.ts";
import { classifyResult } from "../../libs/guard/src/result-class.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const numRuns = isLongRun ? 1_000 : 120;
const limits = guardLimits({ ratePerSecond: 100 });
const START_US = 1.8e15;

/** Results as any worker may report them, in time or late. */
const report = fc.record({
  worker: fc.constantFrom("a", "b", "c"),
  ok: fc.constantFrom(0, 0, 1, 20),
  failed: fc.constantFrom(0, 0, 1, 6, 30),
  slow: fc.constantFrom(0, 0, 5),
  throttled: fc.constantFrom(0, 0, 0, 3),
  retryAfterUs: fc.constantFrom(0, 0, 0, 1.5e6, 2e7),
  verdict: fc.constantFrom("ok", "failed", "neutral"),
  want: fc.constantFrom(0, 1, 64),
  random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
});
const step = fc.record({
  report,
  afterUs: fc.oneof(
    fc.integer({ min: 0, max: 300_000 }),
    fc.integer({ min: 0, max: 3_000_000 }),
    fc.integer({ min: 0, max: 20_000_000 }),
  ),
  /** Number of transitions since the worker's last update. */
  behind: fc.constantFrom(0, 0, 0, 0, 1, 2, 9),
  /** The reported ticket: the newest, an older one or none. */
  ticket: fc.constantFrom("newest", "newest", "older", "none"),
  probes: fc.boolean(),
  evicted: fc.constantFrom(...Array.from({ length: 20 }, () => "nothing"), "live", "failing"),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const steps = fc.array(step, { minLength: 1, maxLength: 120, size: "max" });

interface Admitted extends Admission {
  readonly before: GuardState;
  readonly ask: AdmitRequest;
  readonly nowUs: number;
}

/** Generates a history of the breaker; `inspect` receives every step. */
function live(history: readonly Step[], inspect: (one: Admitted) => void): void {
  let nowUs = START_US;
  let before = newGuardState(limits, nowUs, "r1");
  const tickets: string[] = [];
  for (const one of history) {
    nowUs += one.afterUs;
    if (one.evicted === "live") before = { ...before, live: new Map() };
    if (one.evicted === "failing") before = { ...before, failing: new Map() };
    const ticket = { newest: tickets.at(-1), older: tickets.at(-2), none: "" }[one.ticket] ?? "";
    const ask: AdmitRequest = {
      ...quietAsk,
      ...one.report,
      trailing: Math.floor(one.report.failed / 2),
      generation: Math.max(0, before.generation - one.behind),
      ticket,
      verdict: ticket === "" ? "" : one.report.verdict,
      need: Math.min(1, one.report.want),
      probe: one.probes ? `t${tickets.length}` : "",
    };
    const admission = admit(before, ask, limits, nowUs);
    if (admission.answer.ticket !== "") tickets.push(admission.answer.ticket);
    inspect({ ...admission, before, ask, nowUs });
    before = admission.state;
  }
}

const EDGES = ["closed>open", "open>halfOpen", "halfOpen>open", "halfOpen>closed"];

test(`P6 B1: the breaker moves along its edges only, each for its reason and with the next generation (seed ${seed})`, () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(steps, (history) => {
      // Since the breaker last closed, by workers that knew it.
      let [calls, failures, failuresInARow, refusals] = [0, 0, 0, 0];
      live(history, ({ before, state, answer, ask, nowUs, opened }) => {
        if (before.mode === "closed" && ask.generation === before.generation) {
          calls += ask.ok + ask.failed;
          failures += ask.failed;
          failuresInARow = ask.ok > 0 ? ask.trailing : failuresInARow + ask.failed;
          refusals += ask.throttled;
          // Two failing workers are a quorum, for any fleet size.
          const others = [...before.failing].filter(
            ([worker, atUs]) => worker !== ask.worker && atUs > nowUs - BREAKER.quorumUs,
          );
          const isSure = failuresInARow >= BREAKER.consecutive && others.length > 0;
          if (isSure && ask.failed > 0) expect(state.mode).toBe("open");
        }
        expect([answer.mode, answer.generation]).toEqual([state.mode, state.generation]);
        if (state.mode === before.mode) {
          expect(state.generation).toBe(before.generation);
          // A due transition is not deferred: the first request finds the breaker half open.
          expect(state.mode === "open" && nowUs >= state.untilUs).toBe(false);
          return;
        }
        const edge = `${before.mode}>${state.mode}`;
        seen.set(edge, (seen.get(edge) ?? 0) + 1);
        expect(EDGES).toContain(edge);
        expect(state.generation).toBe(before.generation + 1);
        const isVerdict = ask.ticket === before.ticket && nowUs < before.ticketUntilUs;
        switch (edge) {
          case "closed>open":
            if (opened === "consecutive") {
              expect(failuresInARow).toBeGreaterThanOrEqual(BREAKER.consecutive);
            } else if (opened === "strained") expect(refusals).toBeGreaterThan(0);
            else expect([calls >= BREAKER.minCalls, failures > 0]).toEqual([true, true]);
            break;
          case "open>halfOpen":
            expect(nowUs).toBeGreaterThanOrEqual(before.untilUs);
            break;
          case "halfOpen>open":
            expect([isVerdict, ask.verdict, opened]).toEqual([true, "failed", "probe"]);
            break;
          case "halfOpen>closed":
            expect([isVerdict, ask.verdict]).toEqual([true, "ok"]);
            [calls, failures, failuresInARow, refusals] = [0, 0, 0, 0];
            break;
        }
      });
    }),
    { seed, numRuns },
  );
  expect([...seen.keys()].toSorted()).toEqual(EDGES.toSorted());
  expect(Math.min(...seen.values())).toBeGreaterThan(50);
});

test(`P6 B1: no report and no time leads out of isolation (seed ${seed})`, () => {
  fc.assert(
    fc.property(steps, (history) => {
      let isolated: GuardState = { ...newGuardState(limits, START_US, "r1"), mode: "isolated" };
      live(history, ({ ask, nowUs }) => {
        const { state, answer } = admit(
          isolated,
          { ...ask, generation: isolated.generation },
          limits,
          nowUs,
        );
        expect([state.mode, state.generation, answer.granted, answer.ticket]).toEqual([
          "isolated",
          isolated.generation,
          0,
          "",
        ]);
        isolated = state;
      });
    }),
    { seed, numRuns },
  );
});

const withoutOutcomes = { ok: 0, failed: 0, trailing: 0, slow: 0, throttled: 0, retryAfterUs: 0 };

test(`P6 B3: results of another generation and expired tickets change nothing (seed ${seed})`, () => {
  const counts = { stale: 0, staleTickets: 0, future: 0 };
  fc.assert(
    fc.property(steps, (history) => {
      live(history, ({ before, state, ask, nowUs }) => {
        const isLive = ask.ticket === before.ticket && nowUs < before.ticketUntilUs;
        if (ask.ticket !== "" && !(isLive && before.mode === "halfOpen")) {
          counts.staleTickets += 1;
          const silent: AdmitRequest = { ...ask, ticket: "", verdict: "" };
          expect(state).toEqual(admit(before, silent, limits, nowUs).state);
        }
        const tellsMuch = ask.ok + ask.failed + ask.throttled > 0;
        if (ask.generation < before.generation && tellsMuch && !isLive) {
          counts.stale += 1;
          const silent = { ...ask, ...withoutOutcomes };
          expect(state).toEqual(admit(before, silent, limits, nowUs).state);
        }
        // A worker with lost transitions voids all leases, and its report is not counted either.
        const future = { ...ask, ticket: "", generation: before.generation + 3 };
        const after = admit(before, future, limits, nowUs).state;
        const silent = { ...future, ...withoutOutcomes };
        expect(after).toEqual(admit(before, silent, limits, nowUs).state);
        expect(after.generation).toBeGreaterThan(future.generation);
        expect([before.mode, before.mode === "open" ? "halfOpen" : ""]).toContain(after.mode);
        counts.future += 1;
      });
    }),
    { seed, numRuns },
  );
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(500);
});

const REFUSALS = [400, 403, 404, 405, 409, 410, 412, 413, 415, 422];
/** Results that a healthy server may produce, or that are no evidence. */
const harmless: fc.Arbitrary<CallResult> = fc.oneof(
  fc.constantFrom(...REFUSALS).map((status) => ({ kind: "response" as const, status })),
  fc.constantFrom<CallResult>(
    { kind: "response", status: 401 },
    { kind: "response", status: 500, concern: "part" },
    { kind: "response", status: 503, concern: "part" },
    { kind: "response", status: 429, concern: "object", retryAfterMs: 10_000 },
    { kind: "response", status: 429, concern: "stale", retryAfterMs: 1_000 },
    { kind: "response", status: 429, concern: "connection", retryAfterMs: 5_000 },
    { kind: "aborted" },
  ),
);

test(`P6 B4: no number of rejections and neutral results opens the breaker (seed ${seed})`, () => {
  const volley = fc.record({
    worker: fc.constantFrom("a", "b", "c"),
    results: fc.array(harmless, { minLength: 1, maxLength: 12 }),
    times: fc.constantFrom(1, 10, 1_000),
    slow: fc.boolean(),
    afterUs: fc.integer({ min: 0, max: 500_000 }),
  });
  let calls = 0;
  fc.assert(
    fc.property(fc.array(volley, { maxLength: 60, size: "max" }), (storm) => {
      let nowUs = START_US;
      let state = newGuardState(limits, nowUs, "r1");
      for (const { worker, results, times, slow, afterUs } of storm) {
        nowUs += afterUs;
        const tally = createOutcomeTally();
        for (const result of results) {
          const retryAfterMs = result.kind === "response" ? (result.retryAfterMs ?? 0) : 0;
          tally.note({
            generation: 1,
            class: classifyResult(result),
            slow,
            retryAfterMs,
            nowMs: 0,
          });
        }
        const { retryAfterMs, ...counted } = tally.take(1, 0);
        const ask: AdmitRequest = {
          ...quietAsk,
          ...counted,
          ok: counted.ok * times,
          slow: counted.slow * times,
          worker,
          retryAfterUs: retryAfterMs * 1_000,
        };
        ({ state } = admit(state, ask, limits, nowUs));
        calls += results.length * times;
        expect([state.mode, state.generation, state.failed]).toEqual(["closed", 1, 0]);
        expect([state.pausedUntilUs, state.consecutive]).toEqual([0, 0]);
      }
    }),
    { seed, numRuns },
  );
  expect(calls).toBeGreaterThan(500_000);
});

test(`P6 B5: one worker with failures only does not open the breaker while another reports successes (seed ${seed})`, () => {
  const fails = fc.record({
    failed: fc.constantFrom(1, 3, 12, 200),
    slow: fc.constantFrom(0, 12, 200),
    afterUs: fc.integer({ min: 0, max: 3_000_000 }),
  });
  const others = fc.record({
    count: fc.integer({ min: 1, max: 5 }),
    // Workers that report less often do not count as live.
    everyUs: fc.integer({ min: 10_000, max: BREAKER.quorumUs - 1 }),
    ok: fc.constantFrom(1, 5),
  });
  let failures = 0;
  const reasons = { alone: 0, both: 0 };
  fc.assert(
    fc.property(
      fc.array(fails, { minLength: 5, maxLength: 60, size: "max" }),
      others,
      (bad, { count, everyUs, ok }) => {
        let nowUs = START_US;
        let healthyUs = nowUs;
        let state = newGuardState(limits, nowUs, "r1");
        const tell = (change: Partial<AdmitRequest>, atUs: number) =>
          admit(state, { ...quietAsk, generation: state.generation, ...change }, limits, atUs);
        const reportSuccess = (atUs: number) => {
          for (let i = 0; i < count; i += 1) ({ state } = tell({ worker: `w${i}`, ok }, atUs));
        };
        reportSuccess(nowUs);
        for (const { failed, slow, afterUs } of bad) {
          nowUs += afterUs;
          for (; healthyUs + everyUs <= nowUs; healthyUs += everyUs)
            reportSuccess(healthyUs + everyUs);
          ({ state } = tell({ worker: "bad", failed, slow, trailing: failed }, nowUs));
          failures += failed;
          expect(state.mode).toBe("closed");
        }
        // The same failures open it without other workers, or if a majority fails.
        const failed = BREAKER.consecutive;
        const later = { worker: "bad", failed, trailing: failed };
        if (tell(later, nowUs + BREAKER.quorumUs).state.mode === "open") reasons.alone += 1;
        for (let i = 0; i < count && state.mode === "closed"; i += 1) {
          ({ state } = tell({ ...later, worker: `w${i}` }, nowUs));
          // A majority of the live workers, with the one that failed before.
          if (state.mode === "open") expect(2 * (i + 2)).toBeGreaterThan(count + 1);
        }
        if (state.mode === "open") reasons.both += 1;
      },
    ),
    { seed, numRuns },
  );
  expect(failures).toBeGreaterThan(5_000);
  expect(reasons).toEqual({ alone: numRuns, both: numRuns });
});

test(`P6 B7: the open time starts at 1 s and doubles to the maximum, within 25 %, and is never below Retry-After (seed ${seed})`, () => {
  const openings = { first: 0, again: 0, asked: 0 };
  fc.assert(
    fc.property(steps, (history) => {
      let consecutive = 0;
      let closedUs = -Infinity;
      live(history, ({ before, state, ask, nowUs }) => {
        if (before.mode !== "closed" && state.mode === "closed") closedUs = nowUs;
        if (before.mode === "open" && state.mode === "halfOpen") {
          expect(nowUs).toBeGreaterThanOrEqual(before.untilUs);
        }
        if (before.mode === "open" || state.mode !== "open") return;
        const isAgain = before.mode === "halfOpen" || nowUs - closedUs < BREAKER.calmUs;
        consecutive = isAgain ? consecutive + 1 : 1;
        openings[isAgain ? "again" : "first"] += 1;
        const forUs = state.untilUs - nowUs;
        const base = Math.min(5e6, 1e6 * 2 ** (consecutive - 1));
        expect(forUs).toBeGreaterThanOrEqual(Math.max(0.75 * base - 1, ask.retryAfterUs));
        expect(forUs).toBeLessThanOrEqual(Math.max(1.25 * base, ask.retryAfterUs));
        if (ask.retryAfterUs > 1.25 * base) openings.asked += 1;
      });
    }),
    { seed, numRuns },
  );
  expect(Math.min(...Object.values(openings))).toBeGreaterThan(10);
});

test("P6 B7: the jitter of the open time covers its range, without overflow", () => {
  const { breaker } = limits;
  expect(openDurationUs(1, breaker, 0, 0)).toBe(750_000);
  expect(openDurationUs(1, breaker, 0, 1)).toBe(1_250_000);
  expect(openDurationUs(1e6, breaker, 0, 0.5)).toBe(BREAKER.maxOpenUs);
  expect(openDurationUs(1e6, breaker, 60e6, 0.5)).toBe(60e6);
});

/** All data is lost, or an outdated replica responds. */
const losses = fc.constantFrom("flush", "flush, other run", "replica", "replica, other run");

test(`P6 B9: if Redis loses an open breaker, the bucket is empty (seed ${seed})`, () => {
  const asks = fc.array(
    fc.record({
      worker: fc.constantFrom("a", "b", "c", "d"),
      afterUs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 300_000 })),
      want: fc.constantFrom(1, 10, 64),
      /** Has seen the lost transitions. */
      knows: fc.boolean(),
    }),
    { minLength: 20, maxLength: 150, size: "max" },
  );
  let tokens = 0;
  fc.assert(
    fc.property(steps, losses, asks, (history, loss, after) => {
      let nowUs = START_US;
      let known: GuardState = newGuardState(limits, nowUs, "r1");
      let replica = known;
      live(history, (one) => {
        if (one.before.mode === "closed" && one.state.mode !== "closed") replica = one.before;
        if (one.state.mode === "open" || one.state.mode === "halfOpen") known = one.state;
        ({ nowUs } = one);
      });
      fc.pre(known.mode !== "closed");
      const isFlushed = loss.startsWith("flush");
      const runId = loss.endsWith("other run") ? "r2" : "r1";
      let state = isFlushed ? newGuardState(limits, nowUs, "") : replica;
      const lostUs = nowUs;
      let { generation } = known;
      let [isFenced, given] = [false, 0];
      for (const { worker, afterUs, want, knows } of after) {
        // Only workers with later transitions can detect an outdated replica, so one of them is first.
        const isFirst = state === replica;
        if (!isFirst) nowUs += afterUs;
        const isKnowing = knows || isFirst;
        const admission = admit(
          state,
          { ...quietAsk, worker, runId, want, need: 1, generation: isKnowing ? generation : 0 },
          limits,
          nowUs,
        );
        ({ state } = admission);
        if (isKnowing) {
          isFenced = true;
          ({ generation } = state);
        }
        if (isFenced) expect(state.generation).toBeGreaterThan(known.generation);
        const { granted, waitUs } = admission.answer;
        given += granted;
        // Only the rate since the loss, without any saved tokens.
        const sinceUs = nowUs + waitUs - lostUs;
        expect(granted === 0 ? 0 : given).toBeLessThanOrEqual(
          (sinceUs * limits.ratePerSecond) / 1e6 + 0.01,
        );
      }
      tokens += given;
    }),
    { seed, numRuns },
  );
  expect(tokens).toBeGreaterThan(500);
});

test("counts slow calls among those that count at all", () => {
  const tally = createOutcomeTally();
  const end = { generation: 1, slow: true, retryAfterMs: 0, nowMs: 0 };
  for (const kind of ["ok", "failed", "throttled", "neutral", "unauthorized"] as const) {
    tally.note({ ...end, class: kind });
  }
  expect(tally.take(1, 0)).toMatchObject({ ok: 1, failed: 1, throttled: 1, slow: 2 });
});
