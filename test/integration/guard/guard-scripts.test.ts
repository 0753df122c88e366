import { ORDER, type AdmitRequest } from "@konverge/core";
import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import { guardKeys } from "../../../libs/guard/src/guard-keys.ts";
import { admitArguments, admitScript } from "../../../libs/guard/src/scripts/admit.ts";
import { configureScript } from "../../../libs/guard/src/scripts/configure.ts";
import { quietAsk } from "../../sim/quiet-ask.ts";
import { runScript } from "@konverge/redis";
import { clockAt, withInjectedClock } from "../queue/injected-clock.ts";

const redis = new Redis(process.env["REDIS_URL"] ?? "", { replyMapping: "legacy" });
const admit = withInjectedClock(admitScript);
const configure = withInjectedClock(configureScript);
const NOW_US = 1_800_000_000_000_000;

let serial = 0;
let keys = {
  state: "",
  liveWorkers: "",
  failingWorkers: "",
  transitions: "",
  order: "",
  turns: "",
};
let channel = "";
beforeEach(() => {
  const names = guardKeys(`guard-scripts-${process.pid}-${++serial}`, "c");
  const { state, live, failing, transitions, order, turns } = names;
  keys = { state, liveWorkers: live, failingWorkers: failing, transitions, order, turns };
  channel = names.channel;
});
afterAll(async () => {
  const left = await redis.keys(`guard-scripts-${process.pid}-*`);
  if (left.length > 0) await redis.del(...left);
  await redis.quit();
});

interface Row {
  readonly name: string;
  /** Overrides for the fields of a guard with 100 calls/s, burst 30, tokens of 100 ms: a full bucket of 20. */
  readonly state?: Readonly<Record<string, string | number>>;
  /** Workers with recent reports, and the failing ones. */
  readonly live?: readonly string[];
  readonly failing?: readonly string[];
  /** Places of workers that wait for tokens, of rank 1. */
  readonly order?: Readonly<Record<string, number>>;
  readonly ask?: Partial<AdmitRequest>;
  /** Mode, generation, granted, wait in us, ticket. */
  readonly answer: readonly [string, number, number, number, string];
  readonly after?: Readonly<Record<string, string>>;
}

const CLOSED: readonly Row[] = [
  {
    name: "a full bucket gives what is wanted, now",
    ask: { want: 5, need: 1 },
    answer: ["closed", 1, 5, 0, ""],
    after: { tatUs: String(NOW_US + 50_000) },
  },
  {
    name: "a clock that jumps ahead of the worker's creates no tokens",
    state: { lastUs: NOW_US - 3_600_000_000, tatUs: NOW_US - 3_600_000_000 + 200_000 },
    ask: { want: 1, need: 1, answeredUs: NOW_US - 3_600_000_000, elapsedUs: 50_000 },
    answer: ["closed", 1, 1, 0, ""],
    after: { lastUs: String(NOW_US - 3_600_000_000 + 150_000), skewUs: String(3_599_850_000) },
  },
  {
    name: "a clock that steps back stops no worker",
    state: { lastUs: NOW_US + 4_000_000, tatUs: NOW_US + 4_000_000 },
    ask: { want: 5, need: 1 },
    answer: ["closed", 1, 5, 0, ""],
    after: { lastUs: String(NOW_US + 4_000_000), skewUs: "-4000000" },
  },
  {
    name: "no more than the bucket holds",
    ask: { want: 64, need: 1 },
    answer: ["closed", 1, 20, 0, ""],
  },
  {
    name: "nothing is wanted, nothing is given: a report alone",
    ask: { want: 0, need: 0, ok: 3 },
    answer: ["closed", 1, 0, 0, ""],
    after: { total: "3" },
  },
  {
    name: "an empty bucket promises a stretch of one ttl",
    state: { tatUs: NOW_US + 200_000 },
    ask: { want: 64, need: 1 },
    answer: ["closed", 1, 10, 100_000, ""],
    after: { tatUs: String(NOW_US + 300_000), promisedUs: String(NOW_US + 100_000) },
  },
  {
    name: "what is promised beyond the longest wait is asked for again",
    state: { tatUs: NOW_US + 1_200_000 },
    ask: { want: 1, need: 1 },
    answer: ["closed", 1, 0, 635_000, ""],
  },
  {
    name: "ordinary calls are promised tokens for half of the longest wait",
    state: { tatUs: NOW_US + 700_000 },
    ask: { want: 1, need: 1 },
    answer: ["closed", 1, 0, 135_000, ""],
  },
  {
    name: "critical calls are promised tokens for the longest wait",
    state: { tatUs: NOW_US + 1_190_000 },
    ask: { want: 1, need: 1, rank: 0 },
    answer: ["closed", 1, 1, 1_000_000, ""],
  },
  {
    name: "a worker without tokens gets a place after all others",
    state: { tatUs: NOW_US + 700_000, booked1: 40 },
    order: { b: 20, c: 30 },
    ask: { want: 5, need: 1, turn: "once" },
    answer: ["closed", 1, 0, 375_000, ""],
    after: { booked1: "45" },
  },
  {
    name: "tokens are left for the workers before",
    state: { tatUs: NOW_US + 600_000, booked1: 10 },
    order: { b: 0 },
    ask: { want: 5, need: 1, turn: "once" },
    answer: ["closed", 1, 0, 175_000, ""],
  },
  {
    name: "the first in the order gets tokens",
    state: { tatUs: NOW_US + 600_000, booked1: 20 },
    order: { a: 5, b: 10 },
    ask: { want: 5, need: 1, turn: "once" },
    answer: ["closed", 1, 5, 450_000, ""],
  },
  {
    name: "with half of the bucket unused, there is no order",
    state: { tatUs: NOW_US + 100_000, booked1: 40 },
    order: { b: 0 },
    ask: { want: 64, need: 1, turn: "once" },
    answer: ["closed", 1, 10, 0, ""],
  },
  {
    name: "a class with a floor leaves the floor to others",
    ask: { want: 64, need: 1, rank: 3 },
    answer: ["closed", 1, 14, 0, ""],
  },
  {
    name: "a dear call waits for all of its tokens",
    state: { tatUs: NOW_US + 150_000 },
    ask: { want: 10, need: 10 },
    answer: ["closed", 1, 10, 50_000, ""],
  },
  {
    name: "a pause that a server asked for holds for all",
    state: { pausedUntilUs: NOW_US + 2_000_000 },
    ask: { want: 1, need: 1 },
    answer: ["closed", 1, 0, 2_000_000, ""],
  },
  {
    name: "a greedy worker does not get what others wait for",
    live: ["a", "b", "c", "d", "e", "f"],
    ask: { want: 64, need: 1 },
    answer: ["closed", 1, 10, 0, ""],
  },
  {
    name: "429 cuts the rate, pauses, and empties the bucket from then on",
    ask: { want: 1, need: 1, throttled: 1, retryAfterUs: 1_000_000 },
    answer: ["closed", 1, 0, 1_000_000, ""],
    after: { rate: "70", pausedUntilUs: String(NOW_US + 1_000_000) },
  },
  {
    name: "12 failures in a row, of the only worker, open the breaker",
    ask: { want: 1, need: 1, failed: 12, trailing: 12, random: 0.5 },
    answer: ["open", 2, 0, 1_000_000, ""],
    after: { openings: "1" },
  },
  {
    name: "as many failures as are configured open the breaker, for the configured time",
    state: { failuresToOpen: 3, openUs: 250_000, maxOpenUs: 60_000_000 },
    ask: { want: 1, need: 1, failed: 3, trailing: 3, random: 0.5 },
    answer: ["open", 2, 0, 250_000, ""],
    after: { openings: "1" },
  },
  {
    name: "12 failures in a row do not open a breaker for 40, of at least 50 calls",
    state: { failuresToOpen: 40, callsToOpen: 50 },
    ask: { want: 1, need: 1, failed: 30, trailing: 30 },
    answer: ["closed", 1, 1, 0, ""],
  },
  {
    name: "the configured share of the configured number of calls opens the breaker",
    state: { callsToOpen: 4, failedShare: 0.25 },
    ask: { want: 1, need: 1, ok: 3, failed: 1, random: 0.5 },
    answer: ["open", 2, 0, 1_000_000, ""],
  },
  {
    name: "not where another worker lives and does not fail",
    live: ["b"],
    ask: { want: 1, need: 1, failed: 12, trailing: 12 },
    answer: ["closed", 1, 1, 0, ""],
  },
  {
    name: "but where two of them fail",
    live: ["b"],
    failing: ["b"],
    ask: { want: 1, need: 1, failed: 12, trailing: 12, random: 0.5 },
    answer: ["open", 2, 0, 1_000_000, ""],
  },
  {
    name: "a report of an older generation counts for nothing",
    state: { generation: 5 },
    ask: { generation: 4, want: 1, need: 1, failed: 100, trailing: 100 },
    answer: ["closed", 5, 1, 0, ""],
  },
  {
    name: "a worker that knows a later generation tells of moves that were forgotten",
    ask: { generation: 7, want: 1, need: 1 },
    answer: ["closed", 8, 1, 10_000, ""],
  },
  {
    name: "another Redis may have forgotten grants: an empty bucket",
    ask: { runId: "r2", want: 1, need: 1 },
    answer: ["closed", 1, 1, 10_000, ""],
    after: { runId: "r2" },
  },
];

const OPEN = { mode: "open", generation: 2, untilUs: NOW_US + 400_000 };
const HALF_OPEN = { mode: "halfOpen", generation: 3, openings: 1 };
const TICKET = { ...HALF_OPEN, ticket: "t1", ticketUntilUs: NOW_US + 3_000_000 };
const MOVED: readonly Row[] = [
  {
    name: "open: wait until it is over",
    state: OPEN,
    ask: { want: 1, need: 1 },
    answer: ["open", 2, 0, 400_000, ""],
  },
  {
    name: "its time is up: half open, and a ticket for the first who asks",
    state: { ...OPEN, untilUs: NOW_US },
    ask: { want: 1, need: 1, probe: "t9" },
    answer: ["halfOpen", 3, 1, 0, "t9"],
    after: { ticket: "t9", ticketUntilUs: String(NOW_US + 6_000_000) },
  },
  {
    name: "no second ticket while the first is out",
    state: TICKET,
    ask: { generation: 3, want: 1, need: 1, probe: "t2" },
    answer: ["halfOpen", 3, 0, 3_000_000, ""],
  },
  {
    name: "a ticket that ran out goes to the next",
    state: { ...TICKET, ticketUntilUs: NOW_US },
    ask: { generation: 3, want: 1, need: 1, probe: "t2" },
    answer: ["halfOpen", 3, 1, 0, "t2"],
  },
  {
    name: "a good probe closes, with an empty bucket and a fifth of the rate",
    state: TICKET,
    ask: { generation: 3, ticket: "t1", verdict: "ok", want: 1, need: 1 },
    answer: ["closed", 4, 1, 50_000, ""],
    after: { rate: "20" },
  },
  {
    name: "a failed probe opens for longer",
    state: TICKET,
    ask: { generation: 3, ticket: "t1", verdict: "failed", want: 1, need: 1, random: 0.5 },
    answer: ["open", 4, 0, 2_000_000, ""],
    after: { openings: "2" },
  },
  {
    name: "a probe that tells nothing does not lead straight to the next",
    state: TICKET,
    ask: { generation: 3, ticket: "t1", verdict: "neutral", want: 1, need: 1, probe: "t2" },
    answer: ["halfOpen", 3, 0, 1_000_000, ""],
  },
  {
    name: "nor sooner than the server asks it to",
    state: TICKET,
    ask: {
      generation: 3,
      ticket: "t1",
      verdict: "neutral",
      retryAfterUs: 5_000_000,
      want: 1,
      need: 1,
      probe: "t2",
    },
    answer: ["halfOpen", 3, 0, 5_000_000, ""],
  },
  {
    name: "a verdict under another ticket is ignored",
    state: TICKET,
    ask: { generation: 3, ticket: "t0", verdict: "ok", want: 1, need: 1 },
    answer: ["halfOpen", 3, 0, 3_000_000, ""],
  },
  {
    name: "isolated: nobody, and no probe",
    state: { mode: "isolated", generation: 2 },
    ask: { generation: 2, want: 1, need: 1, probe: "t2" },
    answer: ["isolated", 2, 0, 30_000_000, ""],
  },
];

test.each([...CLOSED, ...MOVED])(
  "P5, P6: $name",
  async ({ state, live, failing, order, ask, answer, after }) => {
    await runScript(redis, configure, {
      keys: { state: keys.state },
      args: {
        by: "test",
        limits: "100 30 10 100 1000",
        isLoss: false,
        keepsLimits: false,
        ...clockAt(NOW_US - 60_000_000),
      },
    });
    await redis.hset(keys.state, {
      runId: "r1",
      lastUs: NOW_US,
      windowUs: NOW_US,
      tatUs: NOW_US,
      ...state,
    });
    for (const worker of live ?? []) await redis.zadd(keys.liveWorkers, NOW_US, worker);
    for (const worker of failing ?? []) await redis.zadd(keys.failingWorkers, NOW_US, worker);
    for (const [worker, place] of Object.entries(order ?? {})) {
      await redis.zadd(keys.order, ORDER.rankStep + place, worker);
      await redis.hset(keys.turns, worker, NOW_US + 1_000_000);
    }
    const full: AdmitRequest = {
      ...quietAsk,
      generation: Number(state?.["generation"] ?? 1),
      random: 0,
      ...ask,
    };
    const args = { ...admitArguments(channel, full), ...clockAt(NOW_US) };
    const found = await runScript(redis, admit, { keys, args });
    const [mode, generation, granted, waitUs, ticket] = answer;
    expect(found).toMatchObject({ mode, generation, granted, waitUs, ticket });
    expect(await redis.hgetall(keys.state)).toMatchObject(after ?? {});
  },
);

test("P5: without limits, no tokens are granted", async () => {
  const ask = { ...quietAsk, want: 1, need: 1 };
  const args = { ...admitArguments(channel, ask), ...clockAt(NOW_US) };
  expect(await runScript(redis, admit, { keys, args })).toEqual({ kind: "unset" });
});
