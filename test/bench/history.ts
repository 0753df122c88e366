import type { AttemptRecord } from "@konverge/records";
import { formatKey, type ObjectKey } from "@konverge/core";
import {
  createHistoryReader,
  createHistoryWriter,
  createWorkQueue,
  type HistoryBatch,
} from "@konverge/queue";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";
import { attemptRow, historyBatch } from "../support/history-batch.ts";

const KEYS = 1_000;
const ATTEMPTS_PER_KEY = 10;
const ROWS_PER_FLUSH = 500;
const SEARCHES = 5;
const PREFIX = "bench";
const CLUSTER = "default";
const CASE = `${KEYS} keys, ${ATTEMPTS_PER_KEY} attempts each, one status write per attempt`;

/** Measures the cost of attempt records: memory and CPU time of Redis, and the time of a search. */
export async function benchHistory({ log }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  const figures: Figure[] = [];
  const add = (metric: string, unit: string, ours: number) =>
    figures.push(figureOf({ suite: "history", case: CASE, metric, unit, ours: [ours] }));

  const attempts = KEYS * ATTEMPTS_PER_KEY;
  const emptyBytes = await own.usedMemory();
  await runAttempts(own, undefined);
  const bareBytes = (await own.usedMemory()) - emptyBytes;
  await own.redis.flushall();
  await runAttempts(own, recordOf);
  const recordedBytes = (await own.usedMemory()) - emptyBytes;
  add("size of a record", "bytes", Buffer.byteLength(JSON.stringify(recordOf(0, 1))));
  add("Redis memory per record", "bytes", (recordedBytes - bareBytes) / attempts);

  const options = {
    redis: { url: own.url },
    prefix: PREFIX,
    cluster: CLUSTER,
    onError: (error: Error) => log(error.message),
  };
  const writer = createHistoryWriter({ ...options, budgetBytes: 2 ** 40 });
  const beforeBytes = await own.usedMemory();
  const before = await own.totals();
  for (let start = 0; start < attempts; start += ROWS_PER_FLUSH) await writer.flush(batch(start));
  const after = await own.totals();
  add(
    "Redis memory per row of the index",
    "bytes",
    ((await own.usedMemory()) - beforeBytes) / attempts,
  );
  add("Redis CPU per row", "us", (after.cpuUs - before.cpuUs) / attempts);
  const reader = createHistoryReader(options);
  const startedMs = performance.now();
  for (let times = 0; times < SEARCHES; times++) {
    await reader.search({ limit: 50, errorCode: "nowhere" });
  }
  const tookMs = (performance.now() - startedMs) / SEARCHES;
  add("search that finds nothing, per 1,000 attempts", "ms", (tookMs * 1_000) / attempts);
  await writer.close();
  await reader.close();
  return figures;
}

async function runAttempts(
  own: OwnRedis,
  make: ((serial: number, epoch: number) => AttemptRecord) | undefined,
): Promise<void> {
  const queue = createWorkQueue({
    redis: { url: own.url },
    controller: keyOf(0).controller,
    cluster: CLUSTER,
    prefix: PREFIX,
  });
  let ended = 0;
  let failure: Error | undefined;
  const worker = queue.work({
    workerId: "bench-host-12345",
    handle: async ({ key, epoch }) => ({
      outcome: { kind: "done" },
      ...(make === undefined ? {} : { record: JSON.stringify(make(serialOf(key), epoch)) }),
    }),
    onClosed: () => {
      ended += 1;
    },
    onError: (error) => {
      failure = error;
    },
  });
  for (let round = 0; round < ATTEMPTS_PER_KEY; round++) {
    const target = (round + 1) * KEYS;
    const requests = Array.from({ length: KEYS }, (_, serial) =>
      queue.request(keyOf(serial), { kind: "watch" }),
    );
    await Promise.all(requests);
    while (ended < target) {
      if (failure !== undefined) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  await worker.stop();
  await queue.close();
}

function keyOf(serial: number): ObjectKey {
  return {
    controller: "node-pool",
    cluster: CLUSTER,
    resource: "nodepools",
    group: "demo.konverge.dev",
    namespace: "team-a",
    name: `pool-${serial}`,
  };
}

const serialOf = ({ name }: ObjectKey): number => Number(name.slice("pool-".length));

/** The engine's record of an attempt that a watch triggered and that wrote its status. */
function recordOf(serial: number, epoch: number): AttemptRecord {
  const key = formatKey(keyOf(serial));
  const at = new Date(1_800_000_000_000 + epoch).toISOString();
  return {
    id: `${key}#${epoch}`,
    key,
    epoch,
    controller: "node-pool",
    uid: "0b7c2f6e-6d4e-4a39-9c53-3f2f4d1f9f11",
    attempt: 1,
    worker: "bench-host-12345",
    triggers: [{ kind: "watch", by: "watch nodepools", resourceVersion: "1234567", generation: 3 }],
    requestedAt: at,
    startedAt: at,
    finishedAt: at,
    durationMs: 12,
    waits: { queueMs: 3, rateLimitMs: 0, laneMs: 1, conflictMs: 0, backoffMs: 0 },
    generation: 3,
    observedGeneration: 3,
    versionBefore: "1234567",
    versionAfter: "1234570",
    outcome: "done",
    writes: [
      {
        verb: "patch",
        resource: "nodepools.demo.konverge.dev",
        namespace: "team-a",
        name: `pool-${serial}`,
        fieldManager: "konverge/node-pool",
        subresource: "status",
        fromVersion: "1234567",
        toVersion: "1234570",
        patch: { status: { machines: 3, observedGeneration: 3 } },
        conflicts: [],
      },
    ],
    conflicts: [],
    calls: { count: 2, durationMs: 9 },
  };
}

function batch(start: number): HistoryBatch {
  const rows = Array.from({ length: ROWS_PER_FLUSH }, (_, at) => ({
    row: attemptRow({
      key: formatKey(keyOf((start + at) % KEYS)),
      epoch: Math.floor((start + at) / KEYS) + 1,
      startedAtMs: 1_800_000_000_000 + start + at,
      durationMs: 12,
      worker: "bench-host-12345",
    }),
    recordBytes: 900,
  }));
  return historyBatch({ rows });
}
