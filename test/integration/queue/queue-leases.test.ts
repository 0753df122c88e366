import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { formatKey, type Outcome } from "@konverge/core";
import { AttemptCancelledError } from "@konverge/queue";
import type { ChildConfig } from "./queue-child.ts";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import {
  CLUSTER,
  CONTROLLER,
  expectNothingLeft,
  hold,
  keyOf,
  useQueues,
  workOn,
} from "./queue-harness.ts";
import { useChildren, type Child } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const harness = useQueues();
const done: Outcome = { kind: "done" };
const http = { kind: "http" } as const;
const LEASE_MS = 1_000;
const CHILD = fileURLToPath(new URL("queue-child.ts", import.meta.url));

const start = useChildren();

function startChild(mode: ChildConfig["mode"], workerId = "child"): Child {
  const { url, prefix } = harness;
  const config: ChildConfig = { url, prefix, leaseMs: LEASE_MS, workerId, mode };
  return start([CHILD, JSON.stringify(config)]);
}

const messageWith = (child: Child, field: string) =>
  until(`the child reports ${field}`, () => child.messages.find((line) => field in line));

test("P1: kill -9 during an attempt loses neither the attempt nor later requests", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  const child = startChild("untilAborted");
  const first = await queue.request(keyOf("a"), { ...http, reason: "first" });
  await messageWith(child, "started");
  const second = await queue.request(keyOf("a"), { ...http, reason: "second" });
  child.process.kill("SIGKILL");
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  for (const { id } of [first, second]) {
    expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  }
  expect(worker.started[0]).toMatchObject({ failures: 1, triggers: [{ reason: "second" }] });
  // P11: the lost attempt has a record too, with its triggers.
  const lost = (await queue.listAttempts(keyOf("a"))).at(-1);
  expect(lost).toMatchObject({ id: "1", outcome: "lost", worker: "child" });
  expect(JSON.parse(lost?.record ?? "")).toMatchObject({ triggers: [{ reason: "first" }] });
});

test("P8: a suspended worker begins no attempt whose lease has ended", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  const keys = Array.from({ length: 20 }, (_, n) => keyOf(`key-${n}`));
  for (const key of keys) await queue.request(key, http);
  const expired: boolean[] = [];
  let hasStoodStill = false;
  workOn(
    queue,
    ({ checkExpiry, signal }) => {
      checkExpiry();
      expired.push(signal.aborted);
      // All other attempts have begun in Redis, and no timer can run meanwhile.
      const endMs = performance.now() + LEASE_MS;
      while (!hasStoodStill && performance.now() < endMs);
      hasStoodStill = true;
      return done;
    },
    { concurrency: keys.length },
  );
  await expectNothingLeft(harness, queue);
  expect(expired.length).toBeGreaterThanOrEqual(keys.length);
  expect(expired).not.toContain(true);
});

test("backs off after the second crash of a handler", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  await queue.request(keyOf("poison"), http);
  for (const workerId of ["one", "two"]) {
    const child = startChild("crash", workerId);
    await messageWith(child, "started");
  }
  const hour = {
    baseMs: 3_600_000,
    factor: 1,
    capMs: 3_600_000,
    steps: 9,
    jitter: { kind: "none" },
  } as const;
  const lost: [id: string, consecutive: number][] = [];
  const worker = workOn(queue, () => done, {
    backoffs: { conflict: hour, failure: hour, rejected: hour },
    onLost: ({ id, consecutive }) => lost.push([id, consecutive]),
  });
  const state = await until("the backoff", async () => {
    const found = await queue.getKey(keyOf("poison"));
    return found?.phase === "backoff" && found.nextAt !== undefined && found;
  });
  expect(state.failures).toBe(2);
  expect(Date.parse(state.nextAt ?? "")).toBeGreaterThan(Date.now() + 3_000_000);
  expect(worker.started).toHaveLength(0);
  await until("the loss is reported", () => lost.length > 0);
  expect(lost).toEqual([[formatKey(keyOf("poison")), 2]]);
  await queue.request(keyOf("poison"), http, { class: "interactive" });
  await until("a person's request", () => worker.closed.length === 1);
});

test("dead-letters a key whose handler crashes its worker each time", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  const { id } = await queue.request(keyOf("poison"), http);
  const immediate = { baseMs: 1, factor: 1, capMs: 1, steps: 9, jitter: { kind: "none" } } as const;
  const backoffs = { conflict: immediate, failure: immediate, rejected: immediate };
  for (const workerId of ["one", "two", "three"]) {
    const child = startChild("crash", workerId);
    await messageWith(child, "started");
  }
  const lost: number[] = [];
  const worker = workOn(queue, () => done, {
    backoffs,
    maxLost: 3,
    onLost: ({ consecutive }) => lost.push(consecutive),
  });
  const state = await until("it is dead-lettered", async () => {
    const found = await queue.getKey(keyOf("poison"));
    return found?.phase === "deadLettered" && found;
  });
  // Reported after the script that dead-letters the key has answered.
  await until("the loss is reported", () => lost.length > 0);
  expect([worker.started.length, lost]).toEqual([0, [3]]);
  expect(state.deadLetter?.error?.message).toContain("3 attempts in a row never ended");
  expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", error: { code: "lost" } });
  await expectNothingLeft(harness, queue);
});

test("a key that was lost twice in a row runs alone in its process", async () => {
  const queue = harness.open();
  const held = hold();
  const { keyHash } = queueNames(harness.prefix, CLUSTER, CONTROLLER);
  const hash = keyHash(formatKey(keyOf("suspect")));
  let turn: string | null = null;
  const worker = workOn(queue, async ({ key }) => {
    if (key.name === "suspect") turn = await harness.redis.hget(hash, "turn");
    else await held.wait();
    return done;
  });
  await queue.request(keyOf("a"), http);
  await until("another key runs", () => worker.started.length === 1);
  await harness.redis.hset(hash, "lost", 2);
  await queue.request(keyOf("suspect"), http);
  await until(
    "the suspect has begun",
    async () => (await queue.getKey(keyOf("suspect")))?.epoch === 1,
  );
  await queue.request(keyOf("b"), http);
  await until("the next has begun", async () => (await queue.getKey(keyOf("b")))?.epoch === 1);
  expect(worker.started.map(({ key }) => key.name)).toEqual(["a"]);
  // If the worker crashed now, it would not be because of the suspect.
  expect(await harness.redis.hget(hash, "turn")).toBe(null);
  held.release();
  await expectNothingLeft(harness, queue);
  expect(worker.started.map(({ key }) => key.name)).toEqual(["a", "suspect", "b"]);
  expect(await queue.getKey(keyOf("suspect"))).toMatchObject({ lastOutcome: "done" });
  expect(turn).toBe("1");
});

test("P8: a worker that was frozen longer than its lease is aborted and fenced", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  const zombie = startChild("untilAborted", "zombie");
  await queue.request(keyOf("a"), http);
  await messageWith(zombie, "started");
  zombie.process.kill("SIGSTOP");
  const worker = workOn(queue, () => done, { workerId: "successor" });
  await until("the successor", () => worker.closed.length === 1);
  const after = await harness.redis.hgetall(
    `${harness.prefix}:{default}/key/${worker.started[0]?.id}`,
  );
  zombie.process.kill("SIGCONT");
  expect((await messageWith(zombie, "aborted"))["aborted"]).toMatch(
    /AttemptCancelledError: lease of .* lost/,
  );
  expect(await messageWith(zombie, "closed")).toMatchObject({ fenced: true });
  expect(
    await harness.redis.hgetall(`${harness.prefix}:{default}/key/${worker.started[0]?.id}`),
  ).toEqual(after);
  expect(await harness.redis.exists(`${harness.prefix}:{default}/timers/node-pool`)).toBe(0);
  await expectNothingLeft(harness, queue);
});

test("renews the lease of a long attempt", async () => {
  // Long enough for a busy machine to renew in time.
  const leaseMs = 1_500;
  const queue = harness.open({ leaseMs });
  const worker = workOn(queue, async ({ signal, startedAtMs }) => {
    await until("two leases", () => Date.now() > startedAtMs + 2 * leaseMs);
    expect(signal.aborted).toBe(false);
    return done;
  });
  for (let n = 0; n < 4; n++) await queue.request(keyOf(`k${n}`), http);
  await until("all run", () => worker.started.length === 4);
  const other = workOn(queue, () => done, { workerId: "other" });
  await expectNothingLeft(harness, queue);
  const attempts = await Promise.all([0, 1, 2, 3].map((n) => queue.listAttempts(keyOf(`k${n}`))));
  expect(attempts.map((list) => list.map(({ outcome }) => outcome))).toEqual(
    Array.from({ length: 4 }, () => ["done"]),
  );
  expect(worker.started.length).toBe(4);
  expect(other.started).toEqual([]);
});

test("stop() drains running attempts and takes no new jobs", async () => {
  const queue = harness.open();
  const held = hold();
  const worker = workOn(
    queue,
    async () => {
      await held.wait();
      return done;
    },
    { concurrency: 1 },
  );
  await queue.request(keyOf("a"), http);
  await until("the attempt", () => worker.started.length === 1);
  const stopped = worker.stop();
  await queue.request(keyOf("b"), http);
  held.release();
  await stopped;
  expect(worker.closed).toMatchObject([{ outcome: "done", fenced: false }]);
  expect(worker.started).toHaveLength(1);
  expect(await queue.counts()).toEqual({ waiting: 1, active: 0, delayed: 0 });
});

test("kill() aborts with a reason; the key runs elsewhere immediately and the attempt is not counted", async () => {
  const queue = harness.open();
  const killed = workOn(queue, async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    const reason: unknown = signal.reason;
    expect(reason).toBeInstanceOf(AttemptCancelledError);
    expect(reason).toMatchObject({ code: "cancelled", reason: "shutdown" });
    return { kind: "cancelled", cause: "shutdown" };
  });
  await queue.request(keyOf("a"), http);
  await until("the attempt", () => killed.started.length === 1);
  await killed.kill();
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  expect(worker.started).toMatchObject([{ attempt: 1, failures: 0, epoch: 2 }]);
  expect(killed.errors).toEqual([]);
});

test("stop() ends in bounded time with a hanging handler, and its key runs elsewhere", async () => {
  const queue = harness.open({ leaseMs: LEASE_MS });
  const child = startChild("hang");
  await queue.request(keyOf("a"), http);
  await messageWith(child, "started");
  child.process.kill("SIGTERM");
  await messageWith(child, "stoppedAfterMs");
  const worker = workOn(queue, () => done);
  await expectNothingLeft(harness, queue);
  expect(worker.started).toMatchObject([{ failures: 1 }]);
});
