import type { BackoffPolicy, ObjectKey, Outcome, Trigger } from "@konverge/core";
import { expect, test } from "vitest";
import { expectNothingLeft, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";

/** Extreme names, texts and settings: each works or is rejected clearly; no request is lost. */

const harness = useQueues();
const done: Outcome = { kind: "done" };
const http = { kind: "http" } as const;

const longest = "n".repeat(253);
const names: readonly [string, Partial<ObjectKey>][] = [
  ["as long as Kubernetes allows", { namespace: "s".repeat(63), name: longest, group: longest }],
  ["percent signs", { name: "a%20b%2Fc%zz%" }],
  ["colons, as RBAC has them", { name: "system:controller:node-pool" }],
  ["slashes", { name: "a/b/../c" }],
  ["letters of all scripts", { name: "größe-名前-🙂" }],
  ["braces, that could look like a hash tag", { name: "{other}" }],
  ["an underscore alone as name and namespace", { name: "_", namespace: "_" }],
  ["line breaks and quotes", { name: 'a\nb\r"c"\0d' }],
  ["what looks like a number", { name: "12345", namespace: "0" }],
];

test.each(names)("a key with %s runs and is distinct from similar keys", async (_, part) => {
  const queue = harness.open();
  const key = { ...keyOf("a"), ...part };
  const { id } = await queue.request(key, http);
  await queue.requestAt({ ...key, name: `${key.name}-later` }, Date.now());
  const worker = workOn(queue, () => done);
  await until("both", () => worker.closed.length === 2);
  await expectNothingLeft(harness, queue);
  expect(worker.started.map((attempt) => attempt.key)).toContainEqual(key);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  expect(await queue.getKey(key)).toMatchObject({ phase: "idle", requested: 1 });
  expect(worker.errors).toEqual([]);
});

test.each([
  ["an empty name", { name: "" }],
  ["half of a surrogate pair", { name: "a\ud83d" }],
  ["an empty namespace", { namespace: "" }],
  ["a dot in the resource", { resource: "node.pools" }],
])("a key with %s is refused and nothing is stored", async (_, part) => {
  const queue = harness.open();
  await expect(queue.request({ ...keyOf("a"), ...part }, http)).rejects.toMatchObject({
    code: "invalid_key",
  });
  expect(await harness.redis.keys(`${harness.prefix}:{default}/key/*`)).toEqual([]);
});

const huge = "x".repeat(1_000_000);
const triggers: readonly [string, Trigger][] = [
  ["a reason of a megabyte", { kind: "http", by: huge, reason: huge }],
  ["a reason cut in the middle of a letter", { kind: "http", reason: `${"x".repeat(499)}🙂` }],
  ["line breaks", { kind: "http", by: "a\nb", reason: "one\r\ntwo\u2028three\0" }],
  ["text that looks like JSON and Lua", { kind: "http", reason: '"}],%s%1\\n' }],
  ["a version that is no number", { kind: "watch", resourceVersion: `1\n${huge}` }],
  ["another object's version of a megabyte", { kind: "owner", version: huge }],
  ["a generation that is no number", { kind: "watch", generation: `1\n2\n3` as unknown as number }],
  ["a trace context of a megabyte", { kind: "http", traceparent: huge }],
];

test.each(triggers)(
  "a trigger with %s keeps other triggers and counters intact",
  async (_, trigger) => {
    const queue = harness.open();
    await queue.request(keyOf("a"), { ...http, reason: "before" });
    await queue.request(keyOf("a"), trigger);
    const { id } = await queue.request(keyOf("a"), { ...http, reason: "after" });
    const hashes = await harness.redis.keys(`${harness.prefix}:{default}/key/*`);
    const bytes = await harness.redis.memory("USAGE", hashes[0] ?? "");
    expect(bytes).toBeLessThan(8_000);
    const worker = workOn(queue, () => done);
    await expectNothingLeft(harness, queue);
    expect(worker.started).toHaveLength(1);
    expect(worker.started[0]).toMatchObject({ attempt: 1, failures: 0, conflicts: 0, epoch: 1 });
    expect(worker.started[0]?.triggers.map(({ reason }) => reason)).toMatchObject([
      "before",
      trigger.reason === undefined ? undefined : expect.any(String),
      "after",
    ]);
    expect(worker.started[0]?.floor).toBeUndefined();
    expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
    expect(worker.errors).toEqual([]);
  },
);

test("all fields of a trigger reach the attempt", async () => {
  const queue = harness.open();
  const trigger: Required<Trigger> = {
    kind: "owner",
    by: "the watch of ConfigMaps",
    reason: "a child changed",
    resourceVersion: "123",
    generation: 4,
    version: "122",
    seen: { configmaps: "122" },
    traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`,
  };
  await queue.request(keyOf("a"), trigger);
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  expect(worker.started[0]?.triggers).toEqual([trigger]);
});

test("a request without a worker waits, and runs when a worker starts", async () => {
  const queue = harness.open({ controller: "nobody" });
  const key = { ...keyOf("a"), controller: "nobody" };
  const { id } = await queue.request(key, http);
  workOn(harness.open(), () => done);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "waiting", attempts: 0 });
  expect(await queue.counts()).toEqual({ waiting: 1, active: 0, delayed: 0 });
  const worker = workOn(queue, () => done);
  await until("the attempt", () => worker.closed.length === 1);
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
});

test("P1, P2: two versions of a controller with different concurrency, backoff and limits share a queue", async () => {
  const policy = (baseMs: number): BackoffPolicy => ({
    baseMs,
    factor: 2,
    capMs: 50,
    steps: Infinity,
    jitter: { kind: "none" },
  });
  const running = new Map<string, number>();
  const overlaps: string[] = [];
  const version = (workerId: string, baseMs: number, concurrency: number, fails: number) =>
    workOn(
      harness.open(),
      async ({ id, failures }) => {
        running.set(id, (running.get(id) ?? 0) + 1);
        if ((running.get(id) ?? 0) > 1) overlaps.push(id);
        await new Promise((resolve) => setImmediate(resolve));
        running.set(id, (running.get(id) ?? 1) - 1);
        return failures < fails ? { kind: "retry", error: new Error(workerId) } : done;
      },
      {
        workerId,
        concurrency,
        fairness: { agingMs: 10_000 * concurrency, weights: { demo: concurrency } },
        backoffs: { conflict: policy(baseMs), failure: policy(baseMs), rejected: policy(baseMs) },
      },
    );
  const queue = harness.open();
  const ids: string[] = [];
  const request = async () => {
    for (let n = 0; n < 40; n++) ids.push((await queue.request(keyOf(`k${n % 10}`), http)).id);
  };
  await request();
  const old = version("old", 1, 1, 3);
  const young = version("young", 7, 8, 1);
  await request();
  await until("both have worked", () => old.closed.length > 0 && young.closed.length > 0);
  // The rollout ends: the new version takes over the remaining keys.
  await old.stop();
  await request();
  await expectNothingLeft(harness, queue);
  expect(overlaps).toEqual([]);
  for (const id of ids) {
    expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  }
  expect([...old.errors, ...young.errors]).toEqual([]);
});

test("a key that one version dead-lettered stays so for the other, until a user request", async () => {
  const queue = harness.open();
  const strict = workOn(queue, () => ({ kind: "retry", error: new Error("broken") }), {
    maxFailures: 1,
  });
  await queue.request(keyOf("a"), http);
  await until("the death", async () => (await queue.getKey(keyOf("a")))?.phase === "deadLettered");
  await strict.stop();
  const lenient = workOn(queue, () => done);
  await queue.request(keyOf("a"), { kind: "watch" });
  await expectNothingLeft(harness, queue);
  expect(lenient.started).toHaveLength(0);
  await queue.request(keyOf("a"), http, { class: "interactive" });
  await until("the release", () => lenient.closed.length === 1);
});

test("an attempt with a long lease keeps its key from a worker with a short one", async () => {
  const held = hold();
  const patient = workOn(
    harness.open({ leaseMs: 10_000 }),
    async () => {
      await held.wait();
      return done;
    },
    { concurrency: 1 },
  );
  const queue = harness.open({ leaseMs: 1_000 });
  await queue.request(keyOf("a"), http);
  await until("the attempt", () => patient.started.length === 1);
  const hasty = workOn(queue, () => done, { workerId: "hasty" });
  for (let n = 0; n < 5; n++) {
    const { id } = await queue.request(keyOf(`other-${n}`), http);
    await until("another key", async () => (await queue.getRequest(id)).phase === "finished");
  }
  // By now the second worker has checked for stalled jobs, as it does every 500 ms.
  const check = `${harness.prefix}:{default}:node-pool:stalled-check`;
  for (let n = 0; n < 4; n++) {
    await until("a stalled check", async () => (await harness.redis.exists(check)) === 1);
    await until("its end", async () => (await harness.redis.exists(check)) === 0);
  }
  expect(hasty.started.filter(({ key }) => key.name === "a")).toEqual([]);
  expect(patient.started[0]?.signal.aborted).toBe(false);
  held.release();
  await expectNothingLeft(harness, queue);
  expect(patient.closed).toMatchObject([{ fenced: false }]);
});
