import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { createWorkQueue, QueueProcess } from "@konverge/queue";
import { openBlocking, openConsumer } from "@konverge/redis";
import { JobWaits, type JobWait } from "../../../libs/queue/src/attempt/job-waits.ts";
import { until } from "../../support/until.ts";
import { CLUSTER, keyOf, workOn } from "./queue-harness.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { seed } from "../../support/test-run.ts";

/** Longer than a test: a wait that ends was ended by its marker. */
const LONG_MS = 600_000;

let server: RunningRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

function openWaits(url = server.url) {
  const errors: Error[] = [];
  const consumer = openConsumer({ url });
  const onError = (error: Error) => errors.push(error);
  consumer.redis.on("error", onError);
  const open = () => openBlocking({ url }) as Redis;
  const waits = new JobWaits({ open, redis: consumer.redis, onError });
  return {
    waits,
    errors,
    [Symbol.dispose]() {
      waits.close();
      consumer.disconnect();
    },
  };
}

type Step =
  | { readonly kind: "wait" | "cancel"; readonly worker: number }
  | { readonly kind: "mark"; readonly queue: number }
  | { readonly kind: "turn" };

const WORKERS = 6;
const QUEUES = 4;

test("a marker ends the wait of a worker of its queue, in any order of waits, markers and cancellations", async () => {
  let runs = 0;
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("wait" as const), worker: fc.nat(WORKERS - 1) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("cancel" as const), worker: fc.nat(WORKERS - 1) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("mark" as const), queue: fc.nat(QUEUES - 1) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("turn" as const) }) },
  );
  const life = async (steps: readonly Step[]) => {
    const root = `waits-${(runs += 1)}`;
    using opened = openWaits();
    const markerOf = (queue: number) => `${root}:${queue}`;
    const waiting = new Map<number, { readonly wait: JobWait; isOver: boolean; found: boolean }>();
    const marks = new Map<number, number>();
    const founds = new Map<number, number>();
    for (const each of steps) {
      if (each.kind === "turn") await redis.ping();
      if (each.kind === "wait" && waiting.get(each.worker)?.isOver !== false) {
        const queue = each.worker % QUEUES;
        const wait = opened.waits.open(markerOf(queue));
        const state = { wait, isOver: false, found: false };
        waiting.set(each.worker, state);
        void (async () => {
          const found = await wait.wait(LONG_MS);
          state.isOver = true;
          if (found !== undefined) founds.set(queue, (founds.get(queue) ?? 0) + 1);
        })();
      }
      if (each.kind === "cancel") waiting.get(each.worker)?.wait.cancel();
      if (each.kind === "mark") {
        const added = await redis.zadd(markerOf(each.queue), 0, "0");
        marks.set(each.queue, (marks.get(each.queue) ?? 0) + added);
      }
    }
    const isWaitedFor = (queue: number) =>
      [...waiting].some(([worker, { isOver }]) => worker % QUEUES === queue && !isOver);
    for (let queue = 0; queue < QUEUES; queue += 1) {
      // Either a worker took the marker, or no worker waits for it.
      await until(`the markers of queue ${queue}`, async () => {
        const left = await redis.zcard(markerOf(queue));
        return left === 0 || !isWaitedFor(queue);
      });
      await until("no marker is lost", async () => {
        const left = await redis.zcard(markerOf(queue));
        return (founds.get(queue) ?? 0) + left >= Math.min(1, marks.get(queue) ?? 0);
      });
    }
    expect(opened.errors).toEqual([]);
  };
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), life), { numRuns: 60, seed });
});

/** Returns the id of a client that blocks, and did not before. */
async function blockingClient(before: readonly string[] = []): Promise<string> {
  return await until("it blocks", async () =>
    (await blockingClients()).find((id) => !before.includes(id)),
  );
}

async function blockingClients(): Promise<string[]> {
  const list = String(await redis.client("LIST"));
  return [...list.matchAll(/^id=(\d+) .*cmd=bzpopmin/gm)].map(([, id = ""]) => id);
}

test("a broken connection ends the waits, and the next ones work", async () => {
  const before = await blockingClients();
  using opened = openWaits();
  const wait = opened.waits.open("broken");
  const first = wait.wait(LONG_MS);
  await redis.call("CLIENT", "KILL", "ID", await blockingClient(before));
  expect(await first).toBeUndefined();
  const second = wait.wait(LONG_MS);
  await redis.zadd("broken", 7, "1");
  expect(await second).toEqual({ member: "1", score: 7 });
});

test.each(["unblock", "id"])(
  "a user without client|%s looks for new markers at intervals",
  async (name) => {
    const rules = ["on", "resetpass", ">secret", "~*", "+@all"];
    // Redis 6.2 cannot remove a single subcommand.
    const others = ["setname", "unblock", "id"].filter((other) => other !== name);
    const ofClient = ["-client", ...others.map((other) => `+client|${other}`)];
    await redis.call("ACL", "SETUSER", "limited", ...rules, ...ofClient);
    const url = new URL(server.url);
    const before = await blockingClients();
    using opened = openWaits(`redis://limited:secret@${url.host}`);
    const first = opened.waits.open(`${name}-1`).wait(LONG_MS);
    await blockingClient(before);
    const second = opened.waits.open(`${name}-2`).wait(LONG_MS);
    await redis.zadd(`${name}-2`, 0, "0");
    // The command that blocked without the second marker ends with the first one.
    await redis.zadd(`${name}-1`, 0, "0");
    expect(await Promise.all([first, second])).toEqual([
      { member: "0", score: 0 },
      { member: "0", score: 0 },
    ]);
    const third = [opened.waits.open(`${name}-3`), opened.waits.open(`${name}-4`)];
    const found = third.map((wait) => wait.wait(LONG_MS));
    await redis.zadd(`${name}-4`, 0, "0");
    expect(await found[1]).toEqual({ member: "0", score: 0 });
    expect(opened.errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/NOPERM|permission/),
    ]);
  },
);

test("a wait that is shorter than the command that blocks interrupts it", async () => {
  const before = await blockingClients();
  using opened = openWaits();
  const long = opened.waits.open("shorter");
  const first = long.wait(LONG_MS);
  await blockingClient(before);
  // Without the interruption, it would end after the command, in 10 s.
  expect(await opened.waits.open("shorter").wait(1)).toBeUndefined();
  long.cancel();
  expect(await first).toEqual({ member: "", score: Infinity });
});

test("the connections of a process do not grow with its queues", async () => {
  const connections = async (queues: number) => {
    const own = await startRedis();
    const url = own.url;
    const admin = new Redis(url);
    const process = new QueueProcess({ url });
    const opened = Array.from({ length: queues }, (_, index) =>
      createWorkQueue({
        redis: { url, deadlineMs: PATIENT_MS },
        cluster: CLUSTER,
        controller: `c${index}`,
        process,
      }),
    );
    const workers = opened.map((queue) => workOn(queue, () => ({ kind: "done" })));
    await Promise.all(
      opened.map((queue, index) =>
        queue.request({ ...keyOf("a"), controller: `c${index}` }, { kind: "http" }),
      ),
    );
    await until("all attempts", () => workers.every(({ closed }) => closed.length === 1));
    const all = (String(await admin.client("LIST")).match(/^id=/gm) ?? []).length;
    await Promise.all(opened.map((queue) => queue.close()));
    admin.disconnect();
    await own.stop();
    return all - 1;
  };
  // Requests, commands of workers, waits for jobs, and background rounds.
  expect(await connections(1)).toBe(4);
  expect(await connections(20)).toBe(4);
});
