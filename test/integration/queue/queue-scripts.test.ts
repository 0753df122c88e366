import { defined } from "@konverge/core";
import { beforeEach, describe, expect, test } from "vitest";
import { decodeAttempt } from "../../../libs/queue/src/attempt/attempt-entry.ts";
import { ageScript } from "../../../libs/queue/src/scripts/age.ts";
import { beginScript } from "../../../libs/queue/src/scripts/begin.ts";
import { endScript } from "../../../libs/queue/src/scripts/end.ts";
import { acknowledgeScript } from "../../../libs/queue/src/scripts/acknowledge.ts";
import { electionsScript } from "../../../libs/queue/src/scripts/elections.ts";
import { pumpScript } from "../../../libs/queue/src/scripts/pump.ts";
import { renewScript } from "../../../libs/queue/src/scripts/renew.ts";
import { requestScript } from "../../../libs/queue/src/scripts/request.ts";
import { runScript } from "@konverge/redis";
import { runRaw } from "../../support/run-raw.ts";
import { useQueues } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const LONG_MS = 60_000;
let hash = "";
let stream = "";
let timers = "";
let firing = "";
let fair = "";
let aging = "";
let index = "";
let deadSet = "";
let pauses = "";
let parked = "";
let progress = "";
let aborts = "";
let resuming = "";
let pumps = "";
let bull = "";
const MEMBER = "c/k8s/r.g/demo/k";

beforeEach(() => {
  const root = `${harness.prefix}:{c}`;
  hash = `${root}/key/${MEMBER}`;
  stream = `${root}/attempts/${MEMBER}`;
  timers = `${root}/timers`;
  firing = `${root}/firing`;
  fair = `${root}/fair`;
  aging = `${root}/aging`;
  index = `${root}/index`;
  deadSet = `${root}/dead`;
  pauses = `${root}/pauses`;
  parked = `${root}/parked`;
  progress = `${root}/progress`;
  aborts = `${root}/aborts`;
  resuming = `${root}/resuming`;
  pumps = `${root}/pumps`;
  bull = `${root}:c:`;
});

interface RequestArgs {
  readonly rank?: number;
  readonly news?: 0 | 1;
  readonly trigger?: string;
  readonly version?: string;
  readonly revision?: string;
}
const request = ({
  rank = 2,
  news = 1,
  trigger = "{}",
  version = "",
  revision = "",
}: RequestArgs = {}) =>
  requestAll([hash], [[rank, news, trigger, version, revision, MEMBER, ""]]).then(([one]) => one);
const requestAll = async (
  hashes: readonly string[],
  calls: readonly (readonly (string | number)[])[],
) =>
  (await runRaw(harness.redis, requestScript, {
    keys: { fair, aging, index, dead: deadSet, parked, bullWaiting: `${bull}prioritized` },
    args: { bull, cap: 3 },
    each: calls.map(([rank, news, trigger, version, revision, member, most], at) => ({
      key: hashes[at] ?? "",
      class: Number(rank),
      news: news === 1,
      trigger: trigger ?? "",
      version: version ?? "",
      revision: revision ?? "",
      member: member ?? "",
      most: most ?? "",
    })),
  })) as unknown[];
/** Returns the priority of the key's waiting job, or its due time. */
const job = async () => {
  const id = (await harness.redis.get(`${bull}de:${MEMBER}`)) ?? "";
  const [score, dueAt] = await Promise.all([
    harness.redis.zscore(`${bull}prioritized`, id),
    harness.redis.zscore(`${bull}delayed`, id),
  ]);
  return {
    priority: score === null ? undefined : Math.floor(Number(score) / 2 ** 32),
    dueAtMs: dueAt === null ? undefined : Math.floor(Number(dueAt) / 0x1000),
  };
};
/** Summarizes an answer of `begin`: class, floor, triggers and counters of a run. */
const begin = async (owner: string, leaseMs = LONG_MS, maxLost = 9, oldestMs = 0) => {
  const [answer] = (await runRaw(harness.redis, beginScript, {
    keys: { fair, aging, pauses, parked, aborts, dead: deadSet, progress },
    args: { leaseMs, worker: "w", kept: 50, retentionMs: LONG_MS, maxLost, work: "runs", oldestMs },
    each: [{ key: hash, owner }],
  })) as (string | number)[][];
  const [kind, first, run, trace] = answer ?? [];
  if (kind !== "run") return answer;
  const [epoch, attempt, failures, conflicts, covered, , lostInARow] = String(first)
    .split(" ")
    .map(Number);
  const [startedAt, worker, rank, since, floor, , ...triggers] = String(run).split("\n");
  expect([Number(startedAt) > 1e12, worker, Number(since) > 1e12]).toEqual([true, "w", true]);
  const asked = {
    rank: Number(rank),
    floor,
    triggers: triggers.join(","),
    ...defined({ trace }),
  };
  const lost = lostInARow === undefined ? {} : { lostInARow };
  return [kind, { epoch, attempt, failures, conflicts, covered, ...lost, ...asked }];
};
interface EndArgs {
  readonly outcome?: string;
  readonly attempts?: number;
  readonly failures?: number | "";
  readonly conflicts?: number | "";
  readonly final?: 0 | 1;
  readonly hold?: string;
  readonly timerMs?: number | "";
  readonly dead?: 0 | 1;
  readonly covered?: number;
}
const end = async (epoch: number, owner: string, args: EndArgs = {}) => {
  const {
    attempts = Number((await fields("attempts"))[0]),
    failures = "",
    conflicts = "",
    final = 1,
    hold = "",
  } = args;
  const rest = [attempts, failures, conflicts, final, hold, 10, args.timerMs ?? "", args.dead ?? 0];
  const entry = '[1,1,1,"done","w","",""]\nrecord';
  const [answer] = (await runRaw(harness.redis, endScript, {
    keys: { timers, fair, aging, index, dead: deadSet, aborts },
    args: { kept: 50, retentionMs: LONG_MS },
    each: [
      {
        key: hash,
        list: stream,
        epoch,
        owner,
        outcome: args.outcome ?? "done",
        covered: args.covered ?? 1,
        entry,
        rest: rest.join(","),
      },
    ],
  })) as unknown[];
  return answer;
};
const renew = (epoch: number, owner = "o1") =>
  runRaw(harness.redis, renewScript, {
    args: { leaseMs: LONG_MS },
    each: [{ key: hash, epoch, owner }],
  });
const fields = (...names: string[]) => harness.redis.hmget(hash, ...names);
/** Waits until a lease of 1 ms has expired by Redis's clock. */
const leaseIsOver = () =>
  until("the end of the lease", async () => {
    const [s, us] = await harness.redis.time();
    return (
      Number(s) * 1_000 + Math.floor(Number(us) / 1_000) >= Number((await fields("leaseUntil"))[0])
    );
  });

describe("request", () => {
  // Answer: number, joined. The priority is the place plus the distance of the class.
  test.each([
    { name: "first", calls: [{}], answer: [1, 0], priority: 17 },
    { name: "second joins", calls: [{}, {}], answer: [2, 1], priority: 17 },
    { name: "better class raises", calls: [{ rank: 4 }, { rank: 1 }], answer: [2, 1], priority: 1 },
    {
      name: "worse class changes nothing",
      calls: [{ rank: 1 }, { rank: 4 }],
      answer: [2, 1],
      priority: 1,
    },
  ])("$name", async ({ calls, answer, priority }) => {
    let last: unknown;
    for (const call of calls) last = await request(call);
    expect(last).toEqual(answer);
    expect(await job()).toEqual({ priority, dueAtMs: undefined });
  });

  test.each([
    { hold: "", news: 1 as const, woken: true },
    { hold: "", news: 0 as const, woken: false },
    { hold: "backoff", news: 1 as const, woken: true },
    { hold: "backoff", news: 0 as const, woken: false },
    { hold: "deferred", news: 1 as const, woken: false },
  ])("of a job that waits in '$hold', news $news: woken $woken", async ({ hold, news, woken }) => {
    const nowMs = Number((await harness.redis.time())[0]) * 1_000;
    const dueAtMs = nowMs + LONG_MS;
    await harness.redis.hset(hash, "hold", hold);
    await harness.redis.set(`${bull}de:${MEMBER}`, "7");
    await harness.redis.hset(`${bull}7`, { deid: MEMBER, priority: 80 });
    await harness.redis.zadd(`${bull}delayed`, dueAtMs * 0x1000, "7");
    expect(await request({ news })).toEqual([1, 0]);
    const { dueAtMs: dueNow = 0, priority } = await job();
    expect(priority).toBeUndefined();
    expect(dueNow < dueAtMs).toBe(woken);
    // It leaves with the place of the request made meanwhile.
    expect(await harness.redis.hget(`${bull}7`, "priority")).toBe(hold === "" ? "80" : "17");
  });

  test("several requests get one job each, in order; a failing one does not affect the others", async () => {
    const names = ["a", "b", "broken", "b", "c"];
    const hashes = names.map((name) => hash.replace(/k$/, name));
    await harness.redis.set(hash.replace(/k$/, "broken"), "no hash");
    const calls = names.map((name) => [2, 1, "{}", "", "", MEMBER.replace(/k$/, name), ""]);
    expect(await requestAll(hashes, calls)).toEqual([
      [1, 0],
      [1, 0],
      expect.objectContaining({ message: expect.stringContaining("WRONGTYPE") }),
      [2, 1],
      [1, 0],
    ]);
    const members = [];
    for (const id of await harness.redis.zrange(`${bull}prioritized`, "0", "-1")) {
      members.push(await harness.redis.hget(`${bull}${id}`, "deid"));
    }
    expect(members).toEqual(["a", "b", "c"].map((name) => MEMBER.replace(/k$/, name)));
    expect(await harness.redis.zrange(index, "0", "-1")).toEqual(members);
  });

  test.each([
    { cancelled: { rank: 4 }, next: { rank: 1 }, place: 1 },
    { cancelled: { rank: 1 }, next: { rank: 4 }, place: 1 },
  ])("after cancelled $cancelled, $next has place $place", async ({ cancelled, next, place }) => {
    await request(cancelled);
    await harness.redis.hset(hash, "pending", "0", "covered", "1", "finished", "1");
    await request(next);
    expect(await job()).toEqual({ priority: place, dueAtMs: undefined });
  });

  test("keeps the highest comparable version and the newest triggers", async () => {
    for (const [version, n] of [
      ["9", 1],
      ["10", 2],
      ["x", 3],
      ["8", 4],
    ] as const) {
      await request({ version, trigger: `{"n":${n}}` });
    }
    expect(await fields("pending")).toEqual(["4"]);
    expect(await begin("o1")).toMatchObject([
      "run",
      { floor: "10", triggers: '{"n":2},{"n":3},{"n":4}', covered: 4 },
    ]);
  });

  test.each([
    { of: "u 7", by: { rank: 1 }, dead: "" },
    { of: "u 7", by: { revision: "u 8" }, dead: "" },
    { of: "u 7", by: { revision: "u 7" }, dead: "1" },
    { of: "u 7", by: {}, dead: "1" },
    { of: "u 7", by: { revision: "other 7" }, dead: "" },
    { of: "u 7", by: { revision: "u deleted" }, dead: "" },
    { of: "u @5", by: { revision: "u @5" }, dead: "1" },
    { of: "u @5", by: { revision: "u @6" }, dead: "1" },
    { of: "u @5", by: { revision: "u @7" }, dead: "" },
    { of: "u @5", by: { revision: "other @6" }, dead: "" },
    { of: "", by: { revision: "u 7" }, dead: "" },
  ])("a key dead-lettered at '$of' has dead=$dead after $by", async ({ of, by, dead }) => {
    const death = { dead: "1", deadRevision: of, deadVersions: " 5 6 ", failures: 3 };
    await harness.redis.hset(hash, death);
    await request(by);
    expect(await fields("dead", "failures")).toEqual([dead, dead === "" ? "0" : "3"]);
  });
});

describe("begin", () => {
  test("returns the collected requests and clears them", async () => {
    await request({ version: "5", trigger: '{"n":1}', rank: 1 });
    const counters = { epoch: 1, attempt: 1, failures: 0, conflicts: 0, covered: 1 };
    expect(await begin("o1")).toEqual([
      "run",
      { ...counters, rank: 1, floor: "5", triggers: '{"n":1}' },
    ]);
    expect(await fields("pending", "covered", "owner")).toEqual(["0", "1", "o1"]);
  });

  test("is busy while another epoch holds the lease; the same owner gets the same answer", async () => {
    await request();
    const first = await begin("o1");
    expect(await begin("o1")).toEqual(first);
    expect(await begin("o2")).toEqual(["busy", expect.any(Number)]);
    expect(await fields("epoch")).toEqual(["1"]);
  });

  test("a suspect stays one in a repeated answer", async () => {
    await request();
    await harness.redis.hset(hash, "lost", 2);
    const first = await begin("o1");
    expect(first).toMatchObject(["run", { lostInARow: 2 }]);
    expect(await begin("o1")).toEqual(first);
  });

  test("an epoch that never ended is recorded and counted as lost; from the second on, the key backs off", async () => {
    await request({ trigger: '{"n":1}' });
    await begin("o1", 1);
    await leaseIsOver();
    expect(await begin("o2", 1)).toMatchObject([
      "run",
      { epoch: 2, attempt: 2, failures: 1, triggers: "", rank: 3 },
    ]);
    await leaseIsOver();
    expect(await begin("o3")).toEqual(["backoff", "2", expect.any(String), 2]);
    expect(await begin("o4")).toMatchObject(["run", { epoch: 3, attempt: 3, failures: 2 }]);
    const lost = (await harness.redis.lrange(stream, 0, -1)).map((entry) =>
      decodeAttempt(MEMBER, entry),
    );
    expect(lost.map(({ id, outcome, worker }) => [id, outcome, worker])).toEqual([
      ["2", "lost", "w"],
      ["1", "lost", "w"],
    ]);
    expect(JSON.parse(lost[1]?.record ?? "")).toMatchObject({
      outcome: "lost",
      epoch: 1,
      worker: "w",
      triggers: [{ n: 1 }],
    });
  });

  test("an attempt that ends resets the count of lost ones", async () => {
    await request();
    await begin("o1", 1);
    await leaseIsOver();
    await begin("o2", 1);
    await end(2, "o2", { outcome: "retry", failures: 1, final: 0, hold: "backoff" });
    await begin("o3", 1);
    await leaseIsOver();
    expect((await begin("o4"))?.[0]).toBe("run");
  });

  test("a retry has no new triggers and keeps the age of the request", async () => {
    await request();
    await begin("o1");
    const since = async () => (await fields("run"))[0]?.split("\n")[3];
    const first = await since();
    await end(1, "o1", { outcome: "conflict", conflicts: 1, final: 0, hold: "backoff" });
    expect(await begin("o2")).toMatchObject([
      "run",
      { epoch: 2, attempt: 2, conflicts: 1, triggers: "", rank: 3 },
    ]);
    expect([await since(), ...(await fields("hold"))]).toEqual([first, ""]);
  });

  test("keeps the trace context for retries only; a caller's has precedence", async () => {
    const trace = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;
    const traced = (digit: string, kind = "watch") =>
      request({ trigger: JSON.stringify({ kind, traceparent: trace(digit) }) });
    const retry = { outcome: "conflict", conflicts: 1, final: 0, hold: "backoff" } as const;
    const traceOf = async (owner: string) =>
      JSON.stringify(await begin(owner)).match(/"trace":"([^"]+)/)?.[1];
    await traced("a");
    await traced("b");
    expect(await traceOf("o1")).toBe(trace("a"));
    expect(await traceOf("o1")).toBe(trace("a"));
    await end(1, "o1", retry);
    expect(await traceOf("o2")).toBe(trace("a"));
    await end(2, "o2", retry);
    await traced("c");
    expect(await traceOf("o3")).toBe(trace("a"));
    await end(3, "o3", retry);
    await traced("c");
    await traced("d", "http");
    expect(await traceOf("o4")).toBe(trace("d"));
    await end(4, "o4", retry);
    expect(await traceOf("o5")).toBe(trace("d"));
    await end(5, "o5", { covered: 5 });
    await request();
    expect(await traceOf("o6")).toBeUndefined();
    await end(6, "o6", retry);
    expect(await traceOf("o7")).toBeUndefined();
  });

  test("returns covered if nothing was requested since the last finished attempt began", async () => {
    await request();
    await begin("o1");
    await end(1, "o1");
    expect(await begin("o2")).toEqual(["covered"]);
    await request();
    expect((await begin("o3"))?.[0]).toBe("run");
  });

  test("runs a key without a hash: a job counts as a request", async () => {
    expect((await begin("o1"))?.[0]).toBe("run");
  });

  test("rejects a dead-lettered key and keeps pending requests", async () => {
    await request();
    await begin("o1");
    await end(1, "o1", { outcome: "terminal", dead: 1 });
    await request();
    expect(await begin("o2")).toEqual(["dead", 0]);
    expect(await fields("pending", "epoch")).toEqual(["1", "1"]);
  });
});

test("begin changes nothing in a Redis whose progress is older than the worker knows", async () => {
  await request();
  const before = await harness.redis.hgetall(hash);
  const beginIf = (oldestMs: number) => begin("o1", LONG_MS, 9, oldestMs);
  expect(await beginIf(1_000)).toEqual(["held"]);
  await harness.redis.hset(progress, "runs", 999, "keys", 1_001);
  expect(await beginIf(1_000)).toEqual(["held"]);
  expect(await harness.redis.hgetall(hash)).toEqual(before);
  await harness.redis.hset(progress, "runs", 1_000);
  expect((await beginIf(1_000))?.[0]).toBe("run");
  // A lost connection repeats the call.
  expect((await beginIf(2_000))?.[0]).toBe("run");
});

describe("an epoch that never ended, as the third in a row", () => {
  const loseThree = async (during: RequestArgs | undefined) => {
    await request({ revision: "u 1" });
    for (const nth of [1, 2, 3]) {
      const answer = await begin(`o${nth}`, 1, 3);
      // The second one backs off first.
      if (answer?.[0] === "backoff") await begin(`p${nth}`, 1, 3);
      if (nth === 3) await harness.redis.hset(hash, "turn", nth);
      await leaseIsOver();
      if (nth === 3 && during !== undefined) await request(during);
    }
    return await begin("last", LONG_MS, 3);
  };

  test.each([{ during: undefined }, { during: { revision: "u 1" } }])(
    "dead-letters the key with $during during the attempt",
    async ({ during }) => {
      expect(await loseThree(during)).toEqual(["dead", 3]);
      expect(await harness.redis.zrange(deadSet, "0", "-1")).toEqual([MEMBER]);
      expect(await fields("dead", "finished", "failures")).toEqual(["1", "1", "3"]);
      const [, death = ""] = ((await fields("death"))[0] ?? "").split("\n");
      expect(JSON.parse(death)).toMatchObject({ 3: "lost", 5: "lost" });
      expect(await begin("again", LONG_MS, 3)).toEqual(["dead", 0]);
    },
  );

  test.each([{ during: { rank: 1 } }, { during: { revision: "u 2" } }])(
    "runs the key with $during during the attempt, and reports it as suspect",
    async ({ during }) => {
      expect(await loseThree(during)).toMatchObject(["run", { failures: 0, lostInARow: 2 }]);
      expect(await fields("dead", "lost")).toEqual([null, "2"]);
    },
  );
});

test("an epoch of a suspect that never had its turn is not counted", async () => {
  await request();
  await harness.redis.hset(hash, "lost", 2, "turn", 7, "epoch", 7);
  await begin("o1", 1, 3);
  await leaseIsOver();
  expect((await begin("o2", 1, 3))?.[0]).toBe("backoff");
  expect(await fields("lost", "dead", "epoch")).toEqual(["2", null, "8"]);
  await begin("o3", 1, 3);
  await harness.redis.hset(hash, "turn", 9);
  await leaseIsOver();
  expect(await begin("o4", 1, 3)).toEqual(["dead", 3]);
});

describe("end", () => {
  test("stores the given counters and leaves the others", async () => {
    await request();
    await harness.redis.hset(hash, "attempts", 3, "failures", 2, "conflicts", 2);
    await begin("o1");
    expect(await end(1, "o1", { attempts: 0, failures: 3 })).toEqual(["stored", 0]);
    expect(await fields("attempts", "failures", "conflicts")).toEqual(["0", "3", "2"]);
  });

  test("P8: an older epoch stores nothing", async () => {
    await request();
    await begin("o1", 1);
    await leaseIsOver();
    await begin("o2");
    const before = await harness.redis.hgetall(hash);
    expect(await end(1, "o1", { timerMs: 5 })).toEqual(["fenced", 0]);
    expect(await harness.redis.hgetall(hash)).toEqual(before);
    expect(await harness.redis.exists(timers)).toBe(0);
    expect(await harness.redis.llen(stream)).toBe(1);
  });

  test("P8: an attempt that counts as lost stores nothing, also before its successor begins", async () => {
    await request();
    await begin("o1", 1);
    await leaseIsOver();
    await begin("o2", 1);
    await leaseIsOver();
    expect(await begin("o3")).toEqual(["backoff", "2", expect.any(String), 2]);
    expect(await end(2, "o2")).toEqual(["fenced", 0]);
    expect(await fields("finished", "failures")).toEqual([null, "2"]);
  });

  test("the same end twice is stored once", async () => {
    await request();
    await begin("o1");
    const retried = await end(1, "o1", { failures: 1, final: 0 });
    expect(retried).toEqual(["stored", expect.any(Number)]);
    expect(await end(1, "o1", { failures: 1, final: 0 })).toEqual(retried);
    expect(await fields("failures")).toEqual(["1"]);
    expect(await harness.redis.llen(stream)).toBe(1);
  });

  test.each([
    { meanwhile: undefined, place: "a place among the retries", priority: 2 + 64 },
    {
      meanwhile: { rank: 2 },
      place: "the place of what was requested meanwhile",
      priority: 2 + 16,
    },
  ])("a retry leaves with $place", async ({ meanwhile, priority }) => {
    await request();
    await begin("o1");
    if (meanwhile !== undefined) await request(meanwhile);
    const answer = await end(1, "o1", {
      outcome: "retry",
      failures: 1,
      final: 0,
      hold: "backoff",
    });
    expect(answer).toEqual(["stored", priority]);
  });

  test("arms the timer and keeps the earliest", async () => {
    for (const [epoch, timerMs] of [
      [1, 5_000],
      [2, 9_000],
    ] as const) {
      await request();
      await begin(`o${epoch}`);
      await end(epoch, `o${epoch}`, { outcome: "requeueAfter", timerMs });
    }
    const [endedAt] = await fields("endedAt");
    const due = Number(await harness.redis.zscore(timers, "k"));
    expect(due - Number(endedAt)).toBeLessThanOrEqual(5_000);
  });

  test.each([
    { during: { revision: "u 2" }, dead: null },
    { during: { revision: "other 1" }, dead: null },
    { during: { revision: "u deleted" }, dead: null },
    { during: { rank: 1 }, dead: null },
    { during: { revision: "u 1" }, dead: "1" },
    { during: {}, dead: "1" },
  ])("dead-letters a key with $during during its attempt: dead=$dead", async ({ during, dead }) => {
    await request({ revision: "u 1" });
    await begin("o1");
    await request(during);
    await end(1, "o1", { outcome: "terminal", dead: 1, failures: 3 });
    expect(await fields("dead", "failures")).toEqual([dead, dead === null ? "0" : "3"]);
    expect((await begin("o2"))?.[0]).toBe(dead === null ? "run" : "dead");
  });

  test.each([
    { pauseMs: 0, renewed: false },
    { pauseMs: LONG_MS / 32, renewed: true },
  ])(
    "after $pauseMs ms without attempts, the expiry of the list is renewed: $renewed",
    async ({ pauseMs, renewed }) => {
      await request();
      await begin("o1");
      await end(1, "o1");
      await harness.redis.pexpire(stream, LONG_MS / 2);
      const [endedAt] = await fields("endedAt");
      await harness.redis.hset(hash, "endedAt", Number(endedAt) - pauseMs);
      await request();
      await begin("o2");
      await end(2, "o2");
      expect((await harness.redis.pttl(stream)) > LONG_MS / 2).toBe(renewed);
    },
  );

  test("expires a key whose object was deleted, unless it is requested again", async () => {
    await request();
    await begin("o1");
    await end(1, "o1", { outcome: "gone" });
    expect(await harness.redis.pttl(hash)).toBeGreaterThan(0);
    await request();
    expect(await harness.redis.pttl(hash)).toBe(-1);
  });
});

test("P8: an end of another attempt with the same epoch changes nothing", async () => {
  await request();
  // A failover lost the begin of the attempt "o1", so that "o2" has its epoch.
  await begin("o2");
  const before = await harness.redis.hgetall(hash);
  expect(await end(1, "o1")).toEqual(["fenced", 0]);
  expect(await harness.redis.hgetall(hash)).toEqual(before);
  expect(await end(1, "o2")).toEqual(["stored", expect.any(Number)]);
});

test("renew extends its own epoch only", async () => {
  await request();
  await begin("o1", 1);
  expect(await renew(1)).toEqual([1]);
  expect(await begin("o2")).toEqual(["busy", expect.any(Number)]);
  expect(await renew(7)).toEqual([0]);
  // A failover lost the begin of another attempt, so both have this epoch.
  expect(await renew(1, "o2")).toEqual([0]);
  await end(1, "o1");
  expect(await renew(1)).toEqual([0]);
});

const pump = (
  owner: string,
  { limit = 9, claimMs = LONG_MS, electMs = LONG_MS, isActive = false, fires = false } = {},
) =>
  runScript(harness.redis, pumpScript, {
    keys: { pumps },
    args: { owner, electMs, claimMs, limit },
    each: [
      {
        timers,
        firing,
        resuming,
        aborts,
        aging,
        fair,
        waiting: `${bull}prioritized`,
        returned: `${bull}wait`,
        delayed: `${bull}delayed`,
        active: `${bull}active`,
        queue: "q",
        isActive,
        fires,
      },
    ],
  }).then(([answer]) => answer!);

test("a pump claims due timers up to the limit, and again without an acknowledgement", async () => {
  const far = Date.now() + 3_600_000;
  for (const [due, member] of [
    [1, "a"],
    [2, "b"],
    [far, "later"],
  ] as const) {
    await harness.redis.zadd(timers, due, member);
  }
  expect((await pump("p", { limit: 1 })).due).toEqual(["a"]);
  expect((await pump("p", { claimMs: 0 })).due).toEqual(["b"]);
  expect((await pump("p")).due).toEqual(["b"]);
  const { waitMs, ordered, due } = await pump("p");
  expect([ordered, due]).toEqual([false, []]);
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(LONG_MS);
  expect(await harness.redis.zrange(timers, "0", "-1")).toEqual(["later"]);
});

test("one pump is elected at a time; another is elected at the end of its time, and may fire its own timers before", async () => {
  await harness.redis.zadd(timers, 1, "a");
  expect((await pump("first", { limit: 0 })).isElected).toBe(true);
  const second = await pump("second");
  expect(second).toMatchObject({ isElected: false, waitMs: -1, due: [] });
  expect(second.electedForMs).toBeGreaterThan(0);
  expect(second.electedForMs).toBeLessThanOrEqual(LONG_MS);
  expect((await pump("second", { fires: true })).due).toEqual(["a"]);
  await pump("first", { electMs: -1 });
  expect((await pump("second")).isElected).toBe(true);
  // An election of a clock that was ahead.
  await harness.redis.hset(pumps, "q", `first ${Date.now() + 1_000 * LONG_MS}`);
  expect((await pump("second")).isElected).toBe(true);
});

const electionOf = (owner: string) =>
  runScript(harness.redis, electionsScript, {
    keys: { pumps },
    args: { owner, electMs: LONG_MS },
    each: [{ queue: "unknown" }, { queue: "q" }],
  });

test("reads the end of an election, and whether jobs were active at the last round of the elected pump", async () => {
  const none = { electedForMs: 0, hasActive: true };
  expect(await electionOf("second")).toEqual([none, none]);
  await pump("first");
  const [unknown, idle] = await electionOf("second");
  expect(unknown).toEqual(none);
  expect(idle?.hasActive).toBe(false);
  expect(idle?.electedForMs).toBeGreaterThan(0);
  expect(idle?.electedForMs).toBeLessThanOrEqual(LONG_MS);
  expect((await electionOf("first"))[1]?.electedForMs).toBe(0);
  await harness.redis.lpush(`${bull}active`, "1");
  expect((await electionOf("second"))[1]?.hasActive).toBe(false);
  await pump("first");
  expect((await electionOf("second"))[1]?.hasActive).toBe(true);
  // An earlier version does not store whether jobs are active.
  await harness.redis.hset(pumps, "q", `first ${Date.now() + LONG_MS - 1_000}`);
  expect((await electionOf("second"))[1]?.hasActive).toBe(true);
  await pump("first", { electMs: -1 });
  expect((await electionOf("second"))[1]?.electedForMs).toBe(0);
});

test("the elected pump learns whether keys wait, age or are delayed, and all whether jobs are active", async () => {
  expect((await pump("first")).hasWaiting).toBe(false);
  for (const set of [aging, `${bull}prioritized`, `${bull}wait`, `${bull}delayed`]) {
    await harness.redis.zadd(set, 1, "a");
    expect((await pump("first")).hasWaiting).toBe(true);
    expect((await pump("second")).hasWaiting).toBe(false);
    await harness.redis.del(set);
  }
  expect((await pump("first")).hasActive).toBe(false);
  await harness.redis.lpush(`${bull}active`, "1");
  expect((await pump("first")).hasActive).toBe(true);
  expect((await pump("second")).hasActive).toBe(true);
});

test("only the elected pump and those with attempts look for operator actions", async () => {
  await harness.redis.hset(aborts, "key", "1");
  expect((await pump("first")).ordered).toBe(true);
  expect((await pump("second")).ordered).toBe(false);
  expect((await pump("second", { isActive: true })).ordered).toBe(true);
});

test("an acknowledgement does not remove the claim of another pump", async () => {
  const acknowledge = (claimedUntilMs: number) =>
    runScript(harness.redis, acknowledgeScript, {
      keys: { firing },
      args: { claimedUntilMs },
      each: [{ member: "a" }],
    });
  await harness.redis.zadd(timers, 1, "a");
  const stalled = await pump("p", { claimMs: -1 });
  const { claimedUntilMs, due } = await pump("p");
  expect(due).toEqual(["a"]);
  expect(await acknowledge(stalled.claimedUntilMs)).toBe(0);
  expect(await harness.redis.zscore(firing, "a")).toBe(`${claimedUntilMs}`);
  expect(await acknowledge(claimedUntilMs)).toBe(1);
});

test("a marker of BullMQ that a dead worker took is restored while a job waits or a delay has ended", async () => {
  const age = () =>
    runScript(harness.redis, ageScript, {
      keys: { fair, aging },
      args: { hashes: `${harness.prefix}:{c}/key/`, bull, limit: 9, ageMs: LONG_MS, weights: "" },
      each: [],
    });
  const marker = `${bull}marker`;
  await age();
  expect(await harness.redis.exists(marker)).toBe(0);
  await request();
  await harness.redis.del(marker);
  await age();
  expect(await harness.redis.zrange(marker, "0", "-1")).toEqual(["0"]);

  await harness.redis.del(marker, `${bull}prioritized`);
  const delayUntil = (ms: number) => harness.redis.zadd(`${bull}delayed`, ms * 4_096, "1");
  await delayUntil(Date.now() + LONG_MS);
  await age();
  expect(await harness.redis.exists(marker)).toBe(0);
  await delayUntil(Date.now() - LONG_MS);
  await age();
  expect(await harness.redis.zrange(marker, "0", "-1")).toEqual(["0"]);

  // The job of a lost worker.
  await harness.redis.del(marker, `${bull}delayed`);
  await harness.redis.lpush(`${bull}wait`, "1");
  await age();
  expect(await harness.redis.zrange(marker, "0", "-1")).toEqual(["0"]);
});
