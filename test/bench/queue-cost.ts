import { figureOf, type Figure } from "./measure.ts";
import type { OwnRedis, RedisTotals } from "./own-redis.ts";
import {
  addMany,
  openBare,
  openOurs,
  takeMany,
  type Content,
  type QueueSide,
} from "./queue-sides.ts";

const JOBS = 10_000;
const CONCURRENCY = 10;
const ROUNDS = 3;
/** A request as a watch makes it, and the record of an attempt that wrote nothing. */
const KEY = "bench/default/configmaps/default/object-1234";
const WATCHED: Content = {
  trigger: { kind: "watch", by: "for configmaps", resourceVersion: "1234567" },
  record: JSON.stringify({
    id: `${KEY}#1`,
    key: KEY,
    epoch: 1,
    controller: "bench",
    attempt: 1,
    worker: "worker-7c9d8b6f5-x2x4z",
    triggers: [{ kind: "watch", by: "for configmaps", resourceVersion: "1234567" }],
    requestedAt: "2026-01-01T00:00:00.000Z",
    startedAt: "2026-01-01T00:00:00.004Z",
    finishedAt: "2026-01-01T00:00:00.008Z",
    durationMs: 4,
    waits: { queueMs: 4 },
    read: { source: "cache", resourceVersion: "1234567" },
    outcome: "done",
    writes: [],
    conflicts: [],
    calls: { count: 0, durationMs: 0 },
  }),
};
const CASE = `cost in Redis, ${JOBS} keys, ${CONCURRENCY} at a time`;

interface Cost {
  readonly request: RedisTotals;
  readonly reconcile: RedisTotals;
  /** Redis memory of one waiting request and of one idle key, in bytes. */
  readonly waitingBytes: number;
  readonly restingBytes: number;
}

/** Measures the cost of one request and one no-op reconcile in Redis, next to a plain job. */
export async function benchQueueCost(own: OwnRedis): Promise<Figure[]> {
  const ours: Cost[] = [];
  const watched: Cost[] = [];
  const bare: Cost[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await costOf(own, openOurs(own.url)));
    watched.push(await costOf(own, openOurs(own.url, WATCHED)));
    bare.push(await costOf(own, openBare(own.url)));
  }
  const figure = (metric: string, unit: string, read: (cost: Cost) => number) =>
    figureOf({
      suite: "queue",
      case: CASE,
      metric,
      unit,
      ours: ours.map(read),
      peer: { name: "bare BullMQ", values: bare.map(read) },
    });
  return [
    figure("script calls per request", "calls", ({ request }) => request.scripts),
    figure(
      "commands per request, including those of scripts",
      "calls",
      ({ request }) => request.commands,
    ),
    figure("Redis CPU per request", "us", ({ request }) => request.cpuUs),
    figure("script calls per reconcile", "calls", ({ reconcile }) => reconcile.scripts),
    figure(
      "commands per reconcile, including those of scripts",
      "calls",
      ({ reconcile }) => reconcile.commands,
    ),
    figure("Redis CPU per reconcile", "us", ({ reconcile }) => reconcile.cpuUs),
    figure("memory per waiting request", "bytes", ({ waitingBytes }) => waitingBytes),
    // A finished plain job leaves no keys, so there is no peer.
    figureOf({
      suite: "queue",
      case: CASE,
      metric: "memory per idle key, after one attempt without a record",
      unit: "bytes",
      ours: ours.map(({ restingBytes }) => restingBytes),
    }),
    figureOf({
      suite: "queue",
      case: CASE,
      metric: "memory per waiting request of a watch",
      unit: "bytes",
      ours: watched.map(({ waitingBytes }) => waitingBytes),
    }),
    figureOf({
      suite: "queue",
      case: CASE,
      metric: "memory per idle key, after one attempt of a watch with its record",
      unit: "bytes",
      ours: watched.map(({ restingBytes }) => restingBytes),
    }),
  ];
}

async function costOf(own: OwnRedis, side: QueueSide): Promise<Cost> {
  await own.redis.flushall();
  const emptyBytes = await own.usedMemory();
  const start = await own.totals();
  await addMany(side, 0, JOBS);
  const added = await own.totals();
  const waitingBytes = (await own.usedMemory()) - emptyBytes;
  const { count } = await takeMany(side, JOBS, CONCURRENCY);
  const taken = await own.totals();
  const restingBytes = (await own.usedMemory()) - emptyBytes;
  await side.close();
  return {
    request: each(start, added, JOBS),
    reconcile: each(added, taken, count),
    waitingBytes: waitingBytes / JOBS,
    restingBytes: restingBytes / JOBS,
  };
}

function each(before: RedisTotals, after: RedisTotals, count: number): RedisTotals {
  return {
    scripts: (after.scripts - before.scripts) / count,
    commands: (after.commands - before.commands) / count,
    cpuUs: (after.cpuUs - before.cpuUs) / count,
  };
}
