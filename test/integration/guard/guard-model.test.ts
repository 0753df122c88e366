import { Redis } from "ioredis";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { admit, newGuardState } from "../../sim/model/admit.ts";
import { ORDER, type AdmitRequest, type BreakerLimits, type GuardLimits } from "@konverge/core";
import { type GuardState } from "../../sim/model/guard-state.ts";
import { guardKeys } from "../../../libs/guard/src/guard-keys.ts";
import { limitsText } from "../../../libs/guard/src/guard-store.ts";
import { admitArguments, admitScript } from "../../../libs/guard/src/scripts/admit.ts";
import { configureScript } from "../../../libs/guard/src/scripts/configure.ts";
import { runScript } from "@konverge/redis";
import { clockAt, withInjectedClock } from "../queue/injected-clock.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const redis = new Redis(process.env["REDIS_URL"] ?? "", { replyMapping: "legacy" });
afterAll(() => redis.quit());

const configure = withInjectedClock(configureScript);
const stepScript = withInjectedClock(admitScript);

const WORKERS = ["a", "b", "c", "d", "e", "f"];
const limitsOf = fc.record({
  ratePerSecond: fc.constantFrom(10, 50, 500, 333.25),
  spare: fc.integer({ min: 2, max: 200 }),
  minRatePerSecond: fc.constantFrom(1, 7),
  tokenTtlMs: fc.constantFrom(50, 100, 200),
  maxWaitMs: fc.constantFrom(100, 1_000),
  breaker: fc
    .record({
      failures: fc.constantFrom(1, 5, 12, 40),
      calls: fc.constantFrom(3, 20, 90),
      failedShare: fc.constantFrom(0.05, 0.5, 1),
      openMs: fc.constantFrom(100, 1_000, 2_500.5),
      grows: fc.constantFrom(1, 5, 20),
    })
    .map(({ grows, ...rest }): BreakerLimits => ({ ...rest, maxOpenMs: rest.openMs * grows })),
});
const step = fc.record({
  afterUs: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 300_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 40_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -3_600_000_000, max: 0 }) },
  ),
  elapsedUs: fc.constantFrom(0, 100_000, 1e7, 1e11),
  worker: fc.constantFrom(...WORKERS),
  // Mostly of the current generation; others have no effect.
  generationLag: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -2),
  ok: fc.constantFrom(0, 0, 1, 5, 100),
  failed: fc.constantFrom(0, 0, 0, 1, 3, 12),
  slow: fc.constantFrom(0, 0, 0, 4),
  throttled: fc.constantFrom(0, 0, 0, 1, 6),
  retryAfterUs: fc.constantFrom(0, 1e6, 5e6),
  verdict: fc.constantFrom("ok", "failed", "neutral"),
  reportsTicket: fc.boolean(),
  want: fc.constantFrom(0, 1, 3, 64, 200),
  need: fc.constantFrom(1, 1, 1, 2, 10),
  late: fc.constantFrom(0, 0, 0, 2),
  rank: fc.constantFrom(0, 1, 1, 1, 2, 3),
  turn: fc.constantFrom("none", "once", "once", "again"),
  canProbe: fc.boolean(),
  random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  runId: fc.constantFrom("r1", "r1", "r1", "r1", "r1", "r1", "r1", "r2", ""),
});

test(`the script admit does what the reference model does (seed ${seed})`, async () => {
  let run = 0;
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      limitsOf,
      fc.array(step, { minLength: 1, maxLength: 120, size: "max" }),
      fc.boolean(),
      async (choice, steps, isLoss) => {
        run += 1;
        const { spare, ...rest } = choice;
        const limits: GuardLimits = {
          ...rest,
          burst: Math.ceil((rest.ratePerSecond * rest.tokenTtlMs) / 1_000) + spare,
        };
        const keys = guardKeys(`guard-model-${seed}`, String(run));
        const { state: stateKey, live, failing, transitions, order, turns } = keys;
        const names = {
          state: stateKey,
          liveWorkers: live,
          failingWorkers: failing,
          transitions,
          order,
          turns,
        };
        let nowUs = 1.8e15;
        await runScript(redis, configure, {
          keys: { state: stateKey },
          args: {
            by: "w",
            limits: limitsText(limits),
            isLoss,
            keepsLimits: false,
            ...clockAt(nowUs),
          },
        });
        let state: GuardState = newGuardState(limits, nowUs, "", isLoss);
        const answeredUs = new Map<string, number>();
        let tickets = 0;
        for (const one of steps) {
          nowUs += one.afterUs;
          const ask: AdmitRequest = {
            worker: one.worker,
            runId: one.runId,
            answeredUs: answeredUs.get(one.worker) ?? 0,
            elapsedUs: one.elapsedUs,
            generation: state.generation - one.generationLag,
            ok: one.ok,
            failed: one.failed,
            trailing: Math.floor(one.failed / 2),
            slow: one.slow,
            throttled: one.throttled,
            retryAfterUs: one.retryAfterUs,
            ticket: one.reportsTicket ? state.ticket : "",
            verdict: one.reportsTicket && state.ticket !== "" ? one.verdict : "",
            want: one.want,
            need: one.want === 0 ? 0 : Math.min(one.need, one.want),
            late: one.late,
            rank: one.rank,
            turn: one.turn,
            probe: one.canProbe ? `t${++tickets}` : "",
            random: one.random,
          };
          const expected = admit(state, ask, limits, nowUs);
          const args = { ...admitArguments(keys.channel, ask), ...clockAt(nowUs) };
          const answer = await runScript(redis, stepScript, { keys: names, args });
          seen.add(expected.answer.mode);
          expect(answer).toMatchObject({
            ...expected.answer,
            ratePerSecond: Math.floor(expected.answer.ratePerSecond * 1_000) / 1_000,
          });
          ({ state } = expected);
          answeredUs.set(one.worker, expected.answer.atUs);
        }
        const stored = await redis.hgetall(keys.state);
        for (const field of [
          "tatUs",
          "lastUs",
          "skewUs",
          "promisedUs",
          "untilUs",
          "openings",
          "total",
          "failed",
          "slow",
          "throttled",
          "consecutive",
          "strainedUs",
          "cutUs",
          "raisedUs",
          "pausedUntilUs",
          "closedUs",
        ] as const) {
          expect([field, Number(stored[field] ?? 0)]).toEqual([field, state[field]]);
        }
        expect(await redis.zcard(keys.failing)).toBe(state.failing.size);
        const places = await redis.zrange(order, "0", "-1", "WITHSCORES");
        const expected = [...state.order].map(([worker, { rank, place, untilUs }]) => [
          worker,
          rank * ORDER.rankStep + place,
          untilUs,
        ]);
        const ends: Record<string, string> = await redis.hgetall(turns);
        const found = places.flatMap((name, i) =>
          i % 2 === 0 ? [[name, Number(places[i + 1]), Number(ends[String(name)])]] : [],
        );
        expect(found.toSorted()).toEqual(expected.toSorted());
        await redis.del(...Object.values(names));
      },
    ),
    { seed, numRuns: isLongRun ? 1_000 : 150 },
  );
  expect([...seen].toSorted()).toEqual(["closed", "halfOpen", "open"]);
});
