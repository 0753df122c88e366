import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { defined } from "@konverge/core";
import { openGuardControl } from "@konverge/guard";
import { createWorkQueue, type WorkQueue } from "@konverge/queue";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { CLUSTER, CONTROLLER, hold, keyOf, patient, workOn } from "../queue/queue-harness.ts";
import { until } from "../../support/until.ts";

/** A Redis that rejects commands: no acknowledged request is lost, callers receive a fix, and workers resume. */

const LEASE_MS = 1_000;
const http = { kind: "http" } as const;
let dir: string;
let redis: RunningRedis;
let admin: Redis;
let queues: WorkQueue[];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "konverge-faults-"));
  redis = await startRedis({ dir, extraArgs: ["--appendfsync", "always"] });
  admin = new Redis(redis.url);
  admin.on("error", () => undefined);
  queues = [];
});
afterEach(async () => {
  await Promise.all(queues.map((queue) => queue.close()));
  admin.disconnect();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

const open = (leaseMs = LEASE_MS, deadlineMs?: number) => {
  const queue = createWorkQueue({
    redis: { url: redis.url, ...defined({ deadlineMs }) },
    controller: CONTROLLER,
    cluster: CLUSTER,
    leaseMs,
  });
  queues.push(queue);
  return queue;
};
const phaseOf = async (queue: WorkQueue, id: string) =>
  (await queue.getRequest(id).catch(() => undefined))?.phase;
const finished = (queue: WorkQueue, id: string) =>
  until(`the end of ${id}`, async () => (await phaseOf(queue, id)) === "finished");

interface Fault {
  readonly word: RegExp;
  readonly fix: RegExp;
  /** Starts the fault. Returns a function that ends it. */
  readonly begin: () => Promise<() => Promise<unknown>>;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  "is full (OOM)": {
    word: /OOM/,
    fix: /raise maxmemory/,
    async begin() {
      await admin.config("SET", "maxmemory", "1");
      return () => admin.config("SET", "maxmemory", "0");
    },
  },
  "is only a replica (READONLY)": {
    word: /READONLY/,
    fix: /URL of the primary/,
    async begin() {
      // The primary does not exist: the replica keeps its data and rejects writes.
      await admin.replicaof("127.0.0.1", 1);
      return () => admin.replicaof("NO", "ONE");
    },
  },
  "cannot save to disk (MISCONF)": {
    word: /MISCONF/,
    fix: /free space/,
    async begin() {
      const file = join(dir, "dump.rdb");
      // A snapshot cannot replace a directory.
      mkdirSync(file);
      await admin.config("SET", "save", "900 1");
      await admin.bgsave();
      await until("the snapshot fails", async () =>
        /rdb_last_bgsave_status:err/.test(await admin.info("persistence")),
      );
      return async () => {
        rmdirSync(file);
        await admin.bgsave();
      };
    },
  },
  "is blocked by a script (BUSY)": {
    word: /BUSY|no answer|timed out/i,
    fix: /SCRIPT KILL|start Redis/,
    async begin() {
      await admin.config("SET", "lua-time-limit", "50");
      const culprit = new Redis(redis.url);
      culprit.on("error", () => undefined);
      culprit.eval("while true do end", 0).catch(() => undefined);
      await until("it is busy", async () =>
        admin.ping().then(
          () => false,
          (error: unknown) => String(error).includes("BUSY"),
        ),
      );
      return async () => {
        await admin.script("KILL");
        culprit.disconnect();
      };
    },
  },
};

test.each(Object.keys(FAULTS))(
  "P1: Redis %s: 503 with a fix, then everything resumes",
  async (name) => {
    const fault = FAULTS[name];
    if (fault === undefined) throw new Error(name);
    const queue = open();
    const held = hold();
    const worker = workOn(
      queue,
      async ({ id }) => {
        if (id.endsWith("/running")) await held.wait();
        return { kind: "done" };
      },
      { concurrency: 2 },
    );
    const running = await patient(queue).request(keyOf("running"), http);
    await until("it runs", () => worker.started.length === 1);
    worker.pause();
    const waiting = await patient(queue).request(keyOf("waiting"), http);

    const mend = await fault.begin();
    // What a busy machine answers too late says nothing about the fault.
    const refusal = await until("an answer of Redis", async () => {
      const error: unknown = await queue
        .request(keyOf("refused"), http)
        .catch((thrown: unknown) => thrown);
      const isLate = /no answer|timed out/i.test(String(error)) && !fault.word.test(String(error));
      return isLate ? undefined : error;
    });
    expect(refusal).toMatchObject({
      code: "redis_unavailable",
      retryAfterMs: 1_000,
      message: expect.stringMatching(fault.word),
    });
    expect(refusal).toHaveProperty("message", expect.stringMatching(fault.fix));
    worker.resume();
    held.release();
    // The worker has met the fault.
    await until(
      "the worker says so, or has ended its attempt",
      () => worker.errors.length + worker.closed.length > 0,
    );
    await mend();

    await until("Redis takes requests again", () =>
      queue.request(keyOf("after"), http).then(
        () => true,
        () => false,
      ),
    );
    await finished(queue, running.id);
    await finished(queue, waiting.id);
    await until("the last one", () => worker.closed.some(({ id }) => id.endsWith("/after")));
  },
);

test("a request waits for a Redis that does not answer until the deadline of its connection", async () => {
  const [hasty, calm] = [open(), open(LEASE_MS, 60_000)];
  await until("both are connected", () =>
    Promise.all([hasty.counts(), calm.counts()]).catch(() => undefined),
  );
  await admin.client("PAUSE", 60_000, "WRITE");
  const accepted = calm.request(keyOf("calm"), http);
  await expect(hasty.request(keyOf("hasty"), http)).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  await admin.client("UNPAUSE");
  expect((await accepted).id).toContain("/calm");
});

test("an action on a guard waits for a Redis that does not answer until the deadline of its connection", async () => {
  const control = (more: { readonly deadlineMs?: number }) =>
    openGuardControl({ redis: { url: redis.url, ...more }, prefix: "faults" });
  await using hasty = control({});
  await using calm = control({ deadlineMs: 60_000 });
  await until("both are connected", () =>
    Promise.all([hasty.limits(), calm.limits()]).catch(() => undefined),
  );
  await admin.client("PAUSE", 60_000, "WRITE");
  const reset = { by: "ada", reason: "the outage is over" };
  const answer = calm.reset("c", reset).catch((error: unknown) => error);
  await expect(hasty.reset("c", reset)).rejects.toMatchObject({ code: "redis_unavailable" });
  await admin.client("UNPAUSE");
  expect(await answer).toMatchObject({ code: "not_found" });
});

test("a full Redis still stores ends of attempts and releases their keys", async () => {
  // A lease that is over cannot be taken anew without room.
  const queue = patient(open(30_000));
  const held = hold();
  const outcomes = ["done", "conflict", "requeueAfter"] as const;
  const worker = workOn(
    queue,
    async ({ id, attempt }) => {
      await held.wait();
      if (attempt > 1 || id.endsWith("/done")) return { kind: "done" };
      if (id.endsWith("/conflict")) return { kind: "conflict", error: new Error("lost a race") };
      return { kind: "requeueAfter", afterMs: 60_000 };
    },
    { concurrency: outcomes.length },
  );
  const ids = await Promise.all(
    outcomes.map(async (name) => (await queue.request(keyOf(name), http)).id),
  );
  await until("all run", () => worker.started.length === outcomes.length);
  // They wait for a slot, and must not take those that become free.
  for (const name of ["late-1/done", "late-2/done"])
    ids.push((await queue.request(keyOf(name), http)).id);
  await admin.config("SET", "maxmemory", "1");
  held.release();
  await until("all ended", () => worker.closed.length === outcomes.length);
  expect(worker.started).toHaveLength(outcomes.length);
  expect(worker.closed.filter(({ fenced }) => fenced)).toEqual([]);
  for (const name of outcomes) {
    expect(await queue.listAttempts(keyOf(name))).toHaveLength(1);
    expect(await queue.getKey(keyOf(name))).toMatchObject({ lastOutcome: name, epoch: 1 });
  }
  const refused = open();
  await until("a connection", () => refused.counts().catch(() => undefined));
  await expect(refused.request(keyOf("more"), http)).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  await admin.config("SET", "maxmemory", "0");
  for (const id of ids) await finished(queue, id);
  expect((await queue.getKey(keyOf("conflict")))?.epoch).toBe(2);
});

test("P1: kill -9 and a slow start (LOADING): 503 meanwhile, and no acknowledged request is lost", async () => {
  const queue = open();
  const ids = await Promise.all(
    Array.from(
      { length: 20 },
      async (_, n) => (await patient(queue).request(keyOf(`k-${n}`), http)).id,
    ),
  );
  // Redis responds after every 1,024 commands of the AOF, which take 1 ms each here.
  const filling = admin.pipeline();
  for (let n = 0; n < 4_096; n += 1) filling.set(`filling-${n}`, "");
  await filling.exec();
  await redis.kill();
  const slow = ["--appendfsync", "always", "--key-load-delay", "1000"];
  const starting = startRedis({ dir, port: redis.port, extraArgs: slow });
  const observer = new Redis({ port: redis.port, enableReadyCheck: false });
  observer.on("error", () => undefined);
  await until("it loads", async () =>
    observer.ping().then(
      () => false,
      (error: unknown) => String(error).includes("LOADING"),
    ),
  );
  await expect(queue.request(keyOf("refused"), http)).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  const worker = workOn(queue, () => ({ kind: "done" }));
  redis = await starting;
  observer.disconnect();
  for (const id of ids) await finished(queue, id);
  expect(worker.closed.every(({ outcome }) => outcome === "done")).toBe(true);
});
