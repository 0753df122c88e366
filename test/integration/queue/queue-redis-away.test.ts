import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { startRedis, type RunningRedis } from "@konverge/infra-redis";
import { createWorkQueue, serveObjectReads, type WorkQueue } from "@konverge/queue";
import { CLUSTER, CONTROLLER, hold, keyOf, patient, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";
import { Child } from "../../support/child.ts";

const dir = mkdtempSync(join(tmpdir(), "konverge-queue-"));
const queues: WorkQueue[] = [];
let server: RunningRedis | undefined;

afterEach(async () => {
  await Promise.all(queues.splice(0).map((queue) => queue.close()));
  await server?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const start = async (port?: number) => {
  server = await startRedis({ dir, port, extraArgs: ["--appendfsync", "always"] });
  return server;
};
const open = (url: string) => {
  const queue = createWorkQueue({
    redis: { url },
    controller: CONTROLLER,
    cluster: CLUSTER,
    leaseMs: 1_000,
  });
  queues.push(queue);
  return queue;
};
const http = { kind: "http" } as const;

test("P1: a crash of Redis loses no acknowledged request; requests fail fast meanwhile, and workers resume", async () => {
  const redis = await start();
  const queue = open(redis.url);
  const worker = workOn(queue, () => ({ kind: "done" }), { concurrency: 1 });
  const held = hold();
  const busy = workOn(
    open(redis.url),
    async () => {
      await held.wait();
      return { kind: "done" };
    },
    { concurrency: 1, workerId: "busy" },
  );
  await patient(queue).request(keyOf("warm-up"), http);
  await until("work", () => worker.closed.length + busy.started.length > 0);
  // Both workers are active; the next requests are acknowledged before the crash.
  const accepted = await Promise.all(
    ["a", "b", "c"].map((name) => patient(queue).request(keyOf(name), http)),
  );
  await redis.kill();
  held.release();

  await expect(queue.request(keyOf("lost"), http)).rejects.toMatchObject({
    code: "redis_unavailable",
  });

  await start(redis.port);
  for (const { id } of accepted) {
    const state = await until("the end of an accepted request", async () => {
      const found = await queue.getRequest(id).catch(() => undefined);
      return found?.phase === "finished" && found;
    });
    expect(state.outcome).toBe("done");
  }
});

test("counts keys although INFO is rejected", async () => {
  const redis = await start();
  const admin = new Redis(redis.url);
  await admin.call("ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-info");
  admin.disconnect();
  const queue = open(`redis://limited:secret@127.0.0.1:${redis.port}`);
  await patient(queue).request(keyOf("a"), http);
  expect(await queue.counts()).toEqual({ waiting: 1, active: 0, delayed: 0 });
});

test("stop() and close() end in bounded time while Redis is unavailable", async () => {
  const redis = await start();
  const queue = open(redis.url);
  const worker = workOn(queue, () => ({ kind: "done" }));
  await patient(queue).request(keyOf("a"), http);
  await until("the attempt", () => worker.closed.length === 1);
  await redis.kill();
  await worker.stop({ graceMs: 100 });
  await expect(queue.close()).resolves.toBeUndefined();
});

test("a worker that is stopped while Redis is unavailable does not keep its process alive", async () => {
  const redis = await start();
  const script = `
    const { createWorkQueue } = await import(${JSON.stringify(import.meta.resolve("@konverge/queue"))});
    const queue = createWorkQueue({
      redis: { url: ${JSON.stringify(redis.url)} },
      cluster: ${JSON.stringify(CLUSTER)},
      controller: ${JSON.stringify(CONTROLLER)},
    });
    const worker = queue.work({
      workerId: "a",
      handle: async () => ({ outcome: { kind: "done" } }),
      onClosed: () => console.log("worked"),
      onError: () => {},
    });
    process.stdin.once("data", async () => {
      await worker.stop({ graceMs: 100 });
      await queue.close();
      process.stdin.destroy();
    });
    const ask = () => queue.request(${JSON.stringify(keyOf("a"))}, { kind: "http" });
    while (!(await ask().then(() => true, () => false)));`;
  await using child = new Child(["--input-type=module", "-e", script]);
  await child.ready;
  await redis.kill();
  child.process.stdin?.write("stop");
  // A process that stays alive hits the deadline of the test.
  expect(await child.exited).toEqual([0, null]);
});

test("a queue that never reached Redis reports it, and closes", async () => {
  const queue = open("redis://127.0.0.1:1");
  const worker = workOn(queue, () => ({ kind: "done" }));
  await expect(queue.request(keyOf("a"), http)).rejects.toMatchObject({
    code: "redis_unavailable",
  });
  await worker.stop({ graceMs: 0 });
  await queue.close();
});

test("reads of objects end while Redis is away", async () => {
  const redis = await start();
  const errors: Error[] = [];
  const stop = serveObjectReads({
    redis: { url: redis.url },
    prefix: "away",
    cluster: CLUSTER,
    controllers: [CONTROLLER],
    read: async () => "{}",
    onError: (error) => errors.push(error),
  });
  await redis.kill();
  // The first errors are of the lost connection, the later ones of attempts to connect.
  await until("it reconnects", () => errors.length > 4);
  await expect(stop()).resolves.toBeUndefined();
});
