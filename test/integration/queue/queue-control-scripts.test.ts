import { beforeEach, describe, expect, test } from "vitest";
import { cancelScript } from "../../../libs/queue/src/scripts/cancel.ts";
import { pauseScript } from "../../../libs/queue/src/scripts/pause.ts";
import { resumeScript } from "../../../libs/queue/src/scripts/resume.ts";
import { unparkScript } from "../../../libs/queue/src/scripts/unpark.ts";
import { runRaw } from "../../support/run-raw.ts";
import { useQueues } from "./queue-harness.ts";

const harness = useQueues();
const MEMBER = "c/k8s/r.g/demo/k";
const NAMES = [
  "hash",
  "cancelled",
  "aborts",
  "parked",
  "aging",
  "actions",
  "pauses",
  "resuming",
  "firing",
] as const;
let at: Record<(typeof NAMES)[number], string>;

beforeEach(() => {
  const root = `${harness.prefix}:{c}`;
  at = Object.fromEntries(NAMES.map((name) => [name, `${root}/${name}`])) as typeof at;
});
const action = '{"kind":"pause","by":"ada","reason":"why"}';
const note = '{"by":"ada","reason":"why"}';

describe("cancel", () => {
  // Requests 1..finished have ended, ..covered have begun, ..number wait.
  const cancel = (number: number) =>
    runRaw(harness.redis, cancelScript, {
      keys: {
        key: at.hash,
        cancelled: at.cancelled,
        aborts: at.aborts,
        parked: at.parked,
        aging: at.aging,
        actions: at.actions,
      },
      args: { member: MEMBER, asked: number, note, action, retentionMs: 60_000 },
    });
  test.each([
    { name: "a number never given", key: { number: 2 }, cancels: [3], answers: ["unknown"] },
    {
      name: "one that has ended",
      key: { number: 2, covered: 2, finished: 2 },
      cancels: [2],
      answers: ["alreadyFinished"],
    },
    {
      name: "the only one that waits",
      key: { number: 1, pending: 1 },
      cancels: [1],
      answers: ["cancelled"],
    },
    {
      name: "the same twice",
      key: { number: 2, pending: 2 },
      cancels: [1, 1],
      answers: ["detached", "alreadyFinished"],
    },
    {
      name: "one of two that wait, then the other",
      key: { number: 2, pending: 2 },
      cancels: [2, 1],
      answers: ["detached", "cancelled"],
    },
    {
      name: "the only one that runs",
      key: { number: 1, covered: 1, owner: "o", epoch: 4 },
      cancels: [1],
      answers: ["aborting"],
    },
    {
      name: "one of two that run, then the other",
      key: { number: 2, covered: 2, owner: "o", epoch: 4 },
      cancels: [1, 2],
      answers: ["detached", "aborting"],
    },
    {
      name: "the follow-up of one that runs",
      key: { number: 2, covered: 1, pending: 1, owner: "o", epoch: 4 },
      cancels: [2],
      answers: ["cancelled"],
    },
    {
      name: "the one that runs, with a follow-up behind it",
      key: { number: 2, covered: 1, pending: 1, owner: "o", epoch: 4 },
      cancels: [1],
      answers: ["aborting"],
    },
    {
      name: "the only one of a backoff",
      key: { number: 1, covered: 1, hold: "backoff" },
      cancels: [1],
      answers: ["cancelled"],
    },
    {
      name: "one that waits beside a backoff",
      key: { number: 2, covered: 1, pending: 1, hold: "backoff" },
      cancels: [2],
      answers: ["detached"],
    },
  ])("$name: $answers", async ({ key, cancels, answers }) => {
    await harness.redis.hset(at.hash, key);
    await harness.redis.zadd(at.parked, 0, MEMBER);
    const given = [];
    for (const number of cancels) given.push(await cancel(number));
    expect(given).toEqual(answers);
    const [finished, hold] = await harness.redis.hmget(at.hash, "finished", "hold");
    const letGo = answers.at(-1) === "cancelled" && !("owner" in key);
    if (letGo) expect([finished, hold]).toEqual([String(key.number), ""]);
    expect(await harness.redis.exists(at.parked)).toBe(letGo ? 0 : 1);
    const aborts = answers.at(-1) === "aborting" ? { [MEMBER]: "4" } : {};
    expect(await harness.redis.hgetall(at.aborts)).toEqual(aborts);
  });

  test("fully cancelled keys are not pending, and each cancellation is stored with its author", async () => {
    await harness.redis.hset(at.hash, { number: 3, covered: 1, finished: 1, pending: 2 });
    await cancel(2);
    expect(await harness.redis.hmget(at.hash, "pending", "covered")).toEqual(["2", "1"]);
    await cancel(3);
    const left = await harness.redis.hmget(at.hash, "pending", "covered", "finished");
    expect(left).toEqual(["0", "3", "3"]);
    const kept = (await harness.redis.zrange(at.cancelled, "0", "-1")).map(
      (text) => JSON.parse(text.slice(text.indexOf(" "))) as object,
    );
    expect(kept).toMatchObject([
      { by: "ada", reason: "why", atMs: expect.any(Number) },
      { by: "ada" },
    ]);
    expect(await harness.redis.llen(at.actions)).toBe(2);
  });

  test("keeps the newest cancellations of finished requests, and all of unfinished ones", async () => {
    const cancelAll = async (from: number, to: number) => {
      for (let number = from; number <= to; number += 1) await cancel(number);
    };
    const kept = async () => (await harness.redis.zrange(at.cancelled, "0", "-1")).length;
    await harness.redis.hset(at.hash, { number: 600, covered: 300, owner: "o", epoch: 4 });
    await cancelAll(1, 299);
    await cancelAll(301, 310);
    expect(await kept()).toBe(309);
    await harness.redis.hset(at.hash, { covered: 310, finished: 310 });
    await cancelAll(311, 599);
    expect(await kept()).toBe(289);
    expect(await cancel(600)).toBe("cancelled");
    await harness.redis.hset(at.hash, { number: 602, finished: 600, pending: 2 });
    await cancelAll(601, 601);
    expect(await kept()).toBe(200);
  });
});

describe("pause, resume and unpark", () => {
  const pause = (field: string) =>
    runRaw(harness.redis, pauseScript, {
      keys: { pauses: at.pauses, actions: at.actions },
      args: { field, note, action },
    });
  const resume = (field: string) =>
    runRaw(harness.redis, resumeScript, {
      keys: { pauses: at.pauses, actions: at.actions, parked: at.parked, resuming: at.resuming },
      args: { field, action, claimMs: 60_000 },
    });
  const unpark = (limit: number, claimMs = 60_000) =>
    runRaw(harness.redis, unparkScript, {
      keys: { resuming: at.resuming, parked: at.parked, pauses: at.pauses, firing: at.firing },
      args: { hashes: `${harness.prefix}:{c}/key/`, limit, claimMs },
    });
  const keys = ["c/k8s/r.g/_/z", "c/k8s/r.g/a/x", "c/k8s/r.g/a/y", "c/k8s/r.g/b/x"];
  beforeEach(async () => {
    await harness.redis.zadd(at.parked, ...keys.flatMap((key) => [0, key]));
  });

  test.each([
    { paused: ["*"], resumed: "*", freed: keys },
    { paused: ["n/a"], resumed: "n/a", freed: keys },
    { paused: ["*", "n/a"], resumed: "n/a", freed: [] },
    { paused: ["*", "n/a"], resumed: "*", freed: ["c/k8s/r.g/_/z", "c/k8s/r.g/b/x"] },
    { paused: ["*", "n/a", `k/${keys[3]}`], resumed: "*", freed: ["c/k8s/r.g/_/z"] },
  ])("after $paused, resume of $resumed frees $freed", async ({ paused, resumed, freed }) => {
    for (const field of paused) expect(await pause(field)).toBe(1);
    expect(await resume(resumed)).toBe(1);
    expect(await unpark(9)).toEqual([freed.length, 0]);
    expect((await harness.redis.zrange(at.firing, "0", "-1")).toSorted()).toEqual(freed);
    expect(await harness.redis.zrange(at.parked, "0", "-1")).toEqual(
      keys.filter((key) => !freed.includes(key)),
    );
    expect(await harness.redis.exists(at.resuming)).toBe(0);
  });

  test("P1: an interrupted resume continues step by step, and every key is always in one of the sets", async () => {
    await pause("*");
    await resume("*");
    // Workers leave the work to the resuming process while it is responsive.
    expect(await unpark(9, 0)).toEqual([0, 0]);
    for (const left of [3, 2, 1, 0]) {
      await unpark(1);
      const [parked, firing] = [
        await harness.redis.zcard(at.parked),
        await harness.redis.zcard(at.firing),
      ];
      expect([parked, firing]).toEqual([left, keys.length - left]);
    }
    expect(await unpark(1)).toEqual([0, 0]);
    expect(await harness.redis.exists(at.resuming)).toBe(0);
  });

  test("resuming an unpaused scope changes nothing, and a second pause replaces the first", async () => {
    expect(await resume("*")).toBe(0);
    expect(await pause("*")).toBe(1);
    expect(await pause("*")).toBe(0);
    expect(await resume("*")).toBe(1);
    expect(await harness.redis.llen(at.actions)).toBe(3);
  });
});
