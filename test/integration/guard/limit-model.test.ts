import { Redis } from "ioredis";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import {
  askPermit,
  callWaiters,
  leaveLine,
  limitRules,
  newLimitState,
  releaseSlot,
  renewSlot,
  type PermitAsk,
} from "@konverge/core";
import { runScript } from "@konverge/redis";
import { limitNames, limitsRoot } from "../../../libs/guard/src/limits/limit-names.ts";
import { configureLimitScript } from "../../../libs/guard/src/scripts/configure-limit.ts";
import { settlePermitsScript } from "../../../libs/guard/src/scripts/settle-permits.ts";
import { takePermitScript } from "../../../libs/guard/src/scripts/take-permit.ts";
import { clockAt, withInjectedClock } from "../queue/injected-clock.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const redis = new Redis(process.env["REDIS_URL"] ?? "", { replyMapping: "legacy" });
afterAll(() => redis.quit());

const take = withInjectedClock(takePermitScript);
const settle = withInjectedClock(settlePermitsScript);

const options = fc.oneof(
  fc.record({ rate: fc.constantFrom(1, 3, 50, 333.25), burst: fc.constantFrom(1, 2, 20) }),
  fc.record({ concurrency: fc.constantFrom(1, 2, 5) }),
  fc.record({
    rate: fc.constantFrom(1, 50),
    burst: fc.constantFrom(1, 5),
    concurrency: fc.constantFrom(1, 3),
  }),
);
const afterUs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 500_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 40_000_000 }) },
  { weight: 1, arbitrary: fc.constant(700_000_000) },
);
const waiter = fc.constantFrom("a", "b", "c", "d", "e", "f", "g");
const change = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      waiter,
      cost: fc.constantFrom(1, 1, 1, 2, 7),
      inPlaceUs: fc.constantFrom(0, 0, 2_000_000),
    }),
  },
  // As a connection that broke before the answer.
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("repeat" as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("release" as const), at: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("renew" as const), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), waiter }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("configure" as const), options }) },
);

test(`the scripts of limits do what the reference model does (seed ${seed})`, async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      options,
      fc.array(fc.tuple(afterUs, change), { minLength: 1, maxLength: 100, size: "max" }),
      async (first, changes) => {
        const prefix = `limit-model-${crypto.randomUUID()}`;
        const names = limitNames(prefix, "stripe", "eu");
        const state = newLimitState();
        let rules = limitRules(first);
        const configure = async () => {
          const { intervalUs, burst, concurrency } = rules;
          await runScript(redis, configureLimitScript, {
            keys: { limits: limitsRoot(prefix), limit: names.limit },
            args: { name: "stripe", intervalUs, burst, concurrency, by: "w", options: "{}" },
          });
        };
        await configure();
        let nowUs = 1.8e15;
        let permits = 0;
        let ask: PermitAsk = { waiter: "a", holder: "h0", cost: 1, inPlaceUs: 0 };
        const holders: string[] = ["none"];
        for (const [stepUs, each] of changes) {
          nowUs += stepUs;
          const clock = clockAt(nowUs);
          if (each.kind === "configure") {
            rules = limitRules(each.options);
            await configure();
            continue;
          }
          if (each.kind === "take" || each.kind === "repeat") {
            if (each.kind === "take") {
              const { cost, inPlaceUs } = each;
              permits += 1;
              ask = { waiter: each.waiter, holder: `h${permits}`, cost, inPlaceUs };
            }
            const isHeld = (state.slots.get(ask.holder) ?? 0) > nowUs;
            const expected = askPermit(state, rules, ask, nowUs);
            const called = callWaiters(state, rules, nowUs);
            const answer = await runScript(redis, take, {
              keys: names,
              args: { key: "eu", ...ask, ...clock },
            });
            seen.add(expected.kind).add(called.length > 0 ? "called" : "quiet");
            const hasSlot = rules.concurrency > 0;
            expect(answer).toEqual(
              expected.kind === "granted"
                ? { kind: "granted", hasSlot, called }
                : { ...expected, called },
            );
            if (isHeld) expect(expected.kind).toBe("granted");
            if (expected.kind === "granted") holders.push(ask.holder);
            continue;
          }
          const name =
            each.kind === "leave" ? each.waiter : (holders[each.at % holders.length] ?? "");
          const lost: string[] = [];
          if (each.kind === "release") releaseSlot(state, name);
          if (each.kind === "leave") leaveLine(state, name);
          if (each.kind === "renew" && !renewSlot(state, name, nowUs)) lost.push(name);
          const called = callWaiters(state, rules, nowUs);
          const answer = await runScript(redis, settle, {
            keys: names,
            args: { key: "eu", ...clock },
            each: [{ action: each.kind, name }],
          });
          expect(answer).toEqual({ lost, called });
        }
      },
    ),
    { seed, numRuns: isLongRun ? 1_000 : 150 },
  );
  expect([...seen].toSorted()).toEqual(["called", "granted", "quiet", "wait"]);
});
