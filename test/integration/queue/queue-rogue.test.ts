import { formatKey, type BackoffPolicy, type Outcome } from "@konverge/core";
import { Queue } from "bullmq";
import { afterEach, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import {
  CLUSTER,
  CONTROLLER,
  expectNothingLeft,
  hold,
  keyOf,
  useQueues,
  workOn,
} from "./queue-harness.ts";
import { until } from "../../support/until.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

/** External writers to the queue: dashboards, scripts, users of redis-cli. */

const harness = useQueues();
const done: Outcome = { kind: "done" };
const failed: Outcome = { kind: "retry", error: new Error("broken") };
const http = { kind: "http" } as const;
const HOUR_MS = 3_600_000;
const policy = (baseMs: number): BackoffPolicy => ({
  baseMs,
  factor: 2,
  capMs: Math.max(baseMs, 40),
  steps: Infinity,
  jitter: { kind: "none" },
});
const backoffs = (baseMs: number) => ({
  conflict: policy(baseMs),
  failure: policy(baseMs),
  rejected: policy(baseMs),
});

const rogues: Queue[] = [];
afterEach(async () => {
  await Promise.all(rogues.splice(0).map((rogue) => rogue.close()));
});

/** BullMQ's Queue object on the same queue, as dashboards use it. */
function openRogue(): Queue {
  const rogue = new Queue(CONTROLLER, {
    connection: { url: harness.url },
    prefix: `${harness.prefix}:{${CLUSTER}}`,
    skipMetasUpdate: true,
  });
  rogues.push(rogue);
  return rogue;
}
const hashOf = (name: string) => `${harness.prefix}:{${CLUSTER}}/key/${formatKey(keyOf(name))}`;

/** Counts concurrent attempts of a key. */
function overlapWatch() {
  const running = new Map<string, number>();
  const overlaps: string[] = [];
  return {
    overlaps,
    during: async <T>(id: string, run: () => Promise<T>): Promise<T> => {
      const now = (running.get(id) ?? 0) + 1;
      running.set(id, now);
      if (now > 1) overlaps.push(id);
      try {
        return await run();
      } finally {
        running.set(id, (running.get(id) ?? 1) - 1);
      }
    },
  };
}

test.each([
  ["no payload", null],
  ["no key", {}],
  ["a key that is a number", { key: 5 }],
  ["a key that is an object", { key: { name: "a" } }],
  ["a key that is no key", { key: "hello" }],
  ["a key with a bad escape", { key: "node-pool/default/nodepools.demo.konverge.dev/demo/%zz" }],
  ["a key of another controller", { key: "other/default/nodepools.demo.konverge.dev/demo/a" }],
  ["a key of another cluster", { key: "node-pool/other/nodepools.demo.konverge.dev/demo/a" }],
  ["a key of a megabyte", { key: "x".repeat(1_000_000) }],
])("a foreign job with %s fails once, is reported, and affects no other job", async (_, data) => {
  const queue = harness.open();
  const rogue = openRogue();
  const worker = workOn(queue, () => done);
  await rogue.add("rogue", data, { attempts: 1_000, priority: 1 });
  const accepted = await queue.request(keyOf("a"), http);
  await until("the foreign job's end", async () => (await rogue.getFailedCount()) === 1);
  await expectNothingLeft(harness, queue);
  const [job] = await rogue.getFailed();
  expect(job).toMatchObject({ attemptsMade: 1 });
  expect(job?.failedReason).toMatch(/not a request of this queue/);
  expect(job?.failedReason.length).toBeLessThan(400);
  expect(worker.errors.map(({ message }) => message)).toEqual([job?.failedReason]);
  expect(await queue.getRequest(accepted.id)).toMatchObject({ phase: "finished" });
  expect(worker.started).toHaveLength(1);
  const hashes = await harness.redis.keys(`${harness.prefix}:{${CLUSTER}}/key/*`);
  expect(hashes).toEqual([hashOf("a")]);
});

test("a foreign name among the timers is dropped and reported; other timers fire", async () => {
  const queue = harness.open();
  await harness.redis.zadd(`${harness.prefix}:{${CLUSTER}}/timers/${CONTROLLER}`, 1, "nonsense");
  await queue.requestAt(keyOf("a"), Date.now());
  const worker = workOn(queue, () => done);
  await until("the timer", () => worker.closed.length === 1);
  await until("the end of the nonsense", async () => {
    const sets = ["timers", "firing"].map(
      (set) => `${harness.prefix}:{${CLUSTER}}/${set}/${CONTROLLER}`,
    );
    return (await harness.redis.exists(...sets)) === 0;
  });
  expect(worker.errors).toMatchObject([{ code: "invalid_key" }]);
});

test("P2: job.retry, retryJobs and a foreign add run no key concurrently; all acknowledged requests end", async () => {
  const queue = harness.open();
  const rogue = openRogue();
  const { overlaps, during } = overlapWatch();
  const held = hold();
  let fails = true;
  const worker = workOn(
    queue,
    async ({ id }) =>
      await during(id, async () => {
        if (fails) return failed;
        await held.wait();
        return done;
      }),
    { backoffs: backoffs(HOUR_MS) },
  );
  const payload = { key: formatKey(keyOf("a")) };
  // Foreign jobs are not retried and stay in the failed set, where a dashboard offers a retry.
  for (let n = 0; n < 2; n++) {
    await rogue.add("rogue", payload);
    await until("the failure", async () => (await rogue.getFailedCount()) === n + 1);
  }
  fails = false;
  const first = await queue.request(keyOf("a"), http, { class: "interactive" });
  await until("our attempt", () => worker.started.length === 3);
  const [one] = await rogue.getFailed();
  await one?.retry("failed");
  await rogue.retryJobs({ state: "failed" });
  await rogue.add("rogue", payload);
  await rogue.removeDeduplicationKey(payload.key);
  const second = await queue.request(keyOf("a"), http);
  // All of them were examined and delayed.
  await until("the rogue jobs are deferred", async () => (await rogue.getDelayedCount()) === 4);
  expect(worker.started).toHaveLength(3);
  held.release();
  await expectNothingLeft(harness, queue);
  expect(overlaps).toEqual([]);
  for (const { id } of [first, second]) {
    expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
  }
  expect(worker.errors.filter(({ message }) => !/^retry$/.test(message))).toEqual([]);
});

test("an external promotion only shortens a backoff; an external priority only changes the order", async () => {
  const queue = harness.open();
  const rogue = openRogue();
  let fails = true;
  const worker = workOn(queue, () => (fails ? failed : done), { backoffs: backoffs(HOUR_MS) });
  await queue.request(keyOf("a"), http);
  await until("the backoff", async () => (await rogue.getDelayedCount()) === 1);
  fails = false;
  const [job] = await rogue.getDelayed();
  await job?.changePriority({ priority: 2_000_000 });
  await job?.promote();
  await expectNothingLeft(harness, queue);
  expect(worker.closed.map(({ outcome }) => outcome)).toEqual(["retry", "done"]);
});

test.each(["waiting", "running", "backing off"])(
  "a key whose hash was deleted while it was %s completes, and so does its next request",
  async (when) => {
    const queue = harness.open();
    const rogue = openRogue();
    const held = hold();
    let fails = when === "backing off";
    const start = () =>
      workOn(
        queue,
        async () => {
          if (fails) return failed;
          await held.wait();
          return done;
        },
        { backoffs: backoffs(when === "backing off" ? HOUR_MS : 1) },
      );
    let worker = when === "waiting" ? undefined : start();
    const accepted = await queue.request(keyOf("a"), http);
    if (when === "running") await until("the attempt", () => worker?.started.length === 1);
    if (when === "backing off") {
      await until("the backoff", async () => (await rogue.getDelayedCount()) === 1);
    }
    await harness.redis.del(hashOf("a"));
    fails = false;
    await expect(queue.getRequest(accepted.id)).rejects.toMatchObject({ code: "not_found" });
    worker ??= start();
    const next = await queue.request(keyOf("a"), http, { class: "interactive" });
    held.release();
    await expectNothingLeft(harness, queue);
    expect(await queue.getRequest(next.id)).toMatchObject({ phase: "finished", outcome: "done" });
    expect(worker.errors).toEqual([]);
  },
);

test.each([
  ["obliterate", async (rogue: Queue) => await rogue.obliterate({ force: true })],
  ["drain", async (rogue: Queue) => await rogue.drain(true)],
])(
  "keys of jobs deleted by %s run when requested again, and no worker fails",
  async (name, remove) => {
    const queue = harness.open();
    const rogue = openRogue();
    const held = hold();
    const worker = workOn(
      queue,
      async () => {
        await held.wait();
        return done;
      },
      { concurrency: 1 },
    );
    const running = await queue.request(keyOf("running"), http);
    await until("the attempt", () => worker.started.length === 1);
    const waiting = await queue.request(keyOf("waiting"), http);
    const parked = await queue.request(keyOf("running"), http);
    await remove(rogue);
    held.release();
    await until("the attempt's end", () => worker.closed.length > 0);
    expect(await queue.getRequest(running.id)).toMatchObject({ phase: "finished" });
    expect(await queue.getRequest(waiting.id)).toMatchObject({ phase: "waiting" });
    // Obliterate pauses the queue.
    if (name === "obliterate") await rogue.resume();
    for (const key of ["running", "waiting"]) await queue.request(keyOf(key), http);
    await expectNothingLeft(harness, queue);
    for (const { id } of [running, waiting, parked]) {
      expect(await queue.getRequest(id)).toMatchObject({ phase: "finished", outcome: "done" });
    }
    expect(worker.errors).toEqual([]);
  },
);

/** Each retryJobs repeats all failed jobs, so the work grows with the square of the steps. */
const STEPS = isLongRun ? 2_000 : 400;
test("P1, P2: random external writes, except deletions, run no key concurrently and lose no request", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const queue = harness.open();
  const rogue = openRogue();
  const { overlaps, during } = overlapWatch();
  let calm = false;
  const handle = async ({ id }: { readonly id: string }): Promise<Outcome> =>
    await during(id, async () => {
      await new Promise((resolve) => setTimeout(resolve, random() * 6));
      const fate = calm ? 1 : random();
      if (fate < 0.2) return failed;
      if (fate < 0.3) return { kind: "conflict", error: new Error("conflict") };
      if (fate < 0.4) return { kind: "deferred", afterMs: 1 + random() * 20, cause: "test" };
      if (fate < 0.5) return { kind: "requeueAfter", afterMs: 1 + random() * 20 };
      return done;
    });
  const workers = ["one", "two", "three"].map((workerId) =>
    workOn(queue, handle, { workerId, concurrency: 4, backoffs: backoffs(1) }),
  );
  const pick = () => `k${Math.floor(random() * 8)}`;
  const some = async (state: "failed" | "delayed" | "prioritized") => {
    const jobs = await rogue.getJobs(state, 0, 5);
    return jobs[Math.floor(random() * jobs.length)];
  };
  const deeds: readonly (() => Promise<unknown>)[] = [
    async () => await (await some("failed"))?.retry("failed"),
    async () => await rogue.retryJobs({ state: "failed", count: 10 }),
    async () => await rogue.removeDeduplicationKey(formatKey(keyOf(pick()))),
    async () => await rogue.add("rogue", { key: formatKey(keyOf(pick())) }),
    async () => await rogue.add("rogue", { key: formatKey(keyOf(pick())) }, { attempts: 3 }),
    async () => await rogue.add("rogue", { nonsense: random() }, { attempts: 5 }),
    async () => await (await some("delayed"))?.promote(),
    async () => await rogue.promoteJobs({ count: 10 }),
    async () =>
      await (
        await some("prioritized")
      )?.changePriority({ priority: 1 + Math.floor(random() * 2_000_000) }),
    async () => await rogue.clean(0, 10, "completed"),
    async () => {
      await rogue.pause();
      await rogue.resume();
    },
  ];
  const ids: string[] = [];
  let refused = 0;
  for (let step = 0; step < STEPS; step++) {
    const classes = ["interactive", "event", "background"] as const;
    const requestClass = classes[Math.floor(random() * classes.length)] ?? "event";
    ids.push((await queue.request(keyOf(pick()), http, { class: requestClass })).id);
    const deed = deeds[Math.floor(random() * deeds.length)];
    // BullMQ rejects actions that the job's state no longer allows.
    if (random() < 0.5) await deed?.().catch(() => (refused += 1));
    if (random() < 0.3) await new Promise((resolve) => setTimeout(resolve, random() * 5));
  }
  calm = true;
  await expectNothingLeft(harness, queue);
  const timers = `${harness.prefix}:{${CLUSTER}}/timers/${CONTROLLER}`;
  await until("timers", async () => (await harness.redis.exists(timers)) === 0);
  await expectNothingLeft(harness, queue);
  expect(overlaps).toEqual([]);
  expect(refused).toBeLessThan(STEPS);
  for (const id of ids) expect(await queue.getRequest(id)).toMatchObject({ phase: "finished" });
  const surprises = workers
    .flatMap(({ errors }) => errors.map(({ message }) => message))
    .filter((message) => !/not a request of this queue/.test(message));
  expect(surprises).toEqual([]);
});
