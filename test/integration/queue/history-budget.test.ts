import { lostRecordSchema } from "@konverge/records";
import { createHistoryReader, createHistoryWriter, type AttemptRow } from "@konverge/queue";
import { startRedis } from "@konverge/infra-redis";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatKey, parseKey } from "@konverge/core";
import { Redis } from "ioredis";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { CLUSTER, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { PATIENT_MS } from "../../support/patient.ts";
import { until } from "../../support/until.ts";
import { attemptRow, historyBatch } from "../../support/history-batch.ts";

const harness = useQueues();
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const RECORD_BYTES = 1_000;

function open(url: string, prefix: string, budgetBytes: number) {
  const redis = { url, deadlineMs: PATIENT_MS };
  const options = { redis, cluster: CLUSTER, prefix, onError: () => undefined };
  const writer = createHistoryWriter({ ...options, budgetBytes });
  const reader = createHistoryReader(options);
  ends.push(() => writer.close());
  ends.push(() => reader.close());
  return { writer, reader };
}

const rowOf = (name: string, over: Partial<AttemptRow> = {}): AttemptRow =>
  attemptRow({ key: formatKey(keyOf(name)), durationMs: 1, writes: 0, calls: 1, ...over });

test("drops the oldest records over the budget, from the index and from their keys", async () => {
  const budgetBytes = 100_000;
  const { writer, reader } = open(harness.url, harness.prefix, budgetBytes);
  const queue = harness.open();
  const record = JSON.stringify({ text: "x".repeat(RECORD_BYTES) });
  const worker = workOn(queue, () => ({ outcome: { kind: "done" }, record }));
  for (let serial = 0; serial < 200; serial++) {
    await queue.request(keyOf(`n-${serial}`), { kind: "http" });
  }
  await until("all have ended", () => worker.closed.length === 200);
  const names = worker.closed.map(({ id }) => id.split("/").at(-1) ?? "");
  // Two workers, as in a fleet: rows of one push out rows of the other.
  const second = open(harness.url, harness.prefix, budgetBytes).writer;
  for (let start = 0; start < 200; start += 20) {
    const rows = names.slice(start, start + 20);
    const entries = rows.map((name) => ({ row: rowOf(name), recordBytes: record.length }));
    await (start % 40 === 0 ? writer : second).flush(historyBatch({ rows: entries }));
  }
  const { items } = await reader.search({ limit: 500 });
  expect(items.map(({ key }) => key.split("/").at(-1))).toEqual(
    names.slice(-items.length).toReversed(),
  );
  expect(items.length * RECORD_BYTES).toBeLessThan(budgetBytes);
  expect(items.length * (RECORD_BYTES + 600)).toBeGreaterThan(budgetBytes);
  const kept = await Promise.all(names.map((name) => queue.listAttempts(keyOf(name))));
  expect(kept.filter((attempts) => attempts.length > 0)).toHaveLength(items.length);
  await worker.stop();
});

test("drops records in favor of the queue when Redis is full", async () => {
  const folder = await mkdtemp(join(tmpdir(), "konverge-history-"));
  const server = await startRedis({ dir: folder });
  onTestFinished(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });
  const redis = new Redis(server.url);
  ends.push(() => redis.quit());
  const { writer, reader } = open(server.url, "test", 1_000_000_000);
  const queue = harness.open({
    redis: { url: server.url, deadlineMs: PATIENT_MS },
    prefix: "test",
  });
  const record = JSON.stringify({ text: "x".repeat(RECORD_BYTES) });
  const errors: Error[] = [];
  const worker = workOn(queue, () => ({ outcome: { kind: "done" }, record }), {
    onError: (error) => errors.push(error),
  });
  for (let serial = 0; serial < 500; serial++) {
    await queue.request(keyOf(`n-${serial}`), { kind: "http" });
  }
  await until("all have ended", () => worker.closed.length === 500);
  const rows = worker.closed.map(({ id }) => ({
    row: rowOf(id.split("/").at(-1) ?? ""),
    recordBytes: record.length,
  }));
  await until("written", () => writer.flush(historyBatch({ rows })).catch(() => undefined));
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  // As if other applications had filled it.
  await redis.config("SET", "maxmemory", String(used - 100_000));
  await expect(queue.request(keyOf("late"), { kind: "http" })).rejects.toThrow("OOM");
  await until("there is room again", async () => {
    await writer.flush(historyBatch({ rows: rows.slice(0, 1) })).catch(() => undefined);
    return await queue.request(keyOf("late"), { kind: "http" }).catch(() => undefined);
  });
  await until("and it is worked on", () => worker.closed.some(({ id }) => id.endsWith("/late")));
  expect((await reader.search({ limit: 1_000 })).items.length).toBeLessThan(501);
  await worker.kill();
});

test("records an attempt as lost after the crash of its worker, also without another worker at that time", async () => {
  const { reader } = open(harness.url, harness.prefix, 1_000_000);
  const queue = harness.open({ leaseMs: 1_000 });
  await queue.request(keyOf("a"), { kind: "http", by: "somebody" });
  const dead = harness.open({ leaseMs: 1_000 });
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const first = workOn(dead, async () => {
    resolve();
    await new Promise(() => undefined);
    return { kind: "done" };
  });
  await started;
  await first.kill();
  const second = workOn(queue, () => ({ kind: "done" }));
  const items = await until("the loss is in the index", async () => {
    const page = await reader.search({ limit: 5, outcome: "lost" });
    return page.items.length > 0 && page.items;
  });
  expect(items).toMatchObject([
    { key: formatKey(keyOf("a")), epoch: 1, outcome: "lost", worker: "test" },
  ]);
  // Newest first; the second attempt may still be running.
  const stored = (await queue.listAttempts(keyOf("a"))).at(-1);
  expect(lostRecordSchema.parse(JSON.parse(stored?.record ?? ""))).toMatchObject({
    epoch: 1,
    attempt: 1,
    triggers: [{ kind: "http", by: "somebody" }],
  });
  await second.stop();
});

test("a search continues at its cursor, beyond the limit of one call", async () => {
  const { writer, reader } = open(harness.url, harness.prefix, 1_000_000_000);
  const rows = Array.from({ length: 4_000 }, (_, serial) => ({
    row: rowOf(`n-${serial}`),
    recordBytes: 0,
  }));
  const needle = { row: rowOf("needle", { errorCode: "kube_api.Forbidden" }), recordBytes: 0 };
  await writer.flush(historyBatch({ rows: [needle] }));
  for (let times = 0; times < 6; times++) await writer.flush(historyBatch({ rows }));
  const query = { limit: 10, errorCode: "Forbidden" };
  const first = await reader.search(query);
  expect(first.items).toEqual([]);
  const second = await reader.search({ ...query, cursor: first.next });
  expect(second).toMatchObject({ items: [{ errorCode: "kube_api.Forbidden" }] });
});

test("a search ends after its budget with a cursor, and takes a turn per round trip", async () => {
  const { writer, reader } = open(harness.url, harness.prefix, 1_000_000_000);
  for (let part = 0; part < 16; part++) {
    const rows = Array.from({ length: 250 }, (_, serial) => ({
      row: rowOf(`n-${part}-${serial}`),
      recordBytes: 0,
    }));
    await writer.flush(historyBatch({ rows }));
  }
  let turns = 0;
  const scan = (budgetMs: number) => {
    const scanned: number[] = [];
    const page = reader.search(
      { limit: 10, name: "nowhere" },
      {
        budgetMs,
        onScanned: (count) => scanned.push(count),
        async turn(read) {
          turns++;
          return await read();
        },
      },
    );
    return page.then(({ next }) => ({ next, scanned }));
  };
  expect(await scan(0)).toEqual({ next: expect.any(String), scanned: [250] });
  expect(await scan(Infinity)).toEqual({ scanned: [...Array<number>(16).fill(250), 0] });
  expect(turns).toBe(18);
});

test("counts competing managers of all attempts, by hour and namespace", async () => {
  // No hour begins between the writes and the reads.
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const { writer, reader } = open(harness.url, harness.prefix, 1_000_000_000);
  const hourMs = 3_600_000;
  const rowsAt = (startedAtMs: number) =>
    Array.from({ length: 250 }, (_, serial) => ({
      row: rowOf(`n-${serial}`, { managers: ["hpa", "argocd"], startedAtMs }),
      recordBytes: 0,
    }));
  const now = Date.now();
  for (let part = 0; part < 6; part++) {
    await writer.flush(historyBatch({ rows: [...rowsAt(now), ...rowsAt(now - 5 * hourMs)] }));
  }
  const sums = async (hours: number, namespaces?: string[]) =>
    (await reader.competingManagers(hours, namespaces)).map(({ manager, attempts }) => [
      manager,
      attempts,
    ]);
  const { namespace = "_" } = parseKey(rowOf("n").key);
  expect(await sums(1)).toEqual(
    expect.arrayContaining([
      ["hpa", 1_500],
      ["argocd", 1_500],
    ]),
  );
  expect(await sums(6)).toEqual(
    expect.arrayContaining([
      ["hpa", 3_000],
      ["argocd", 3_000],
    ]),
  );
  expect(await sums(6, [namespace, "x"])).toHaveLength(2);
  expect(await sums(6, ["x"])).toEqual([]);
});

test("limits contention to a number of pairs per object and of members per sorted set", async () => {
  const { writer, reader } = open(harness.url, harness.prefix, 1_000_000);
  const object = "widgets.example.com/default/a";
  for (let serial = 0; serial < 100; serial += 20) {
    const pairs = Array.from({ length: 20 }, (_, at) => ({
      kind: "conflict" as const,
      manager: `m-${serial + at}`,
      path: "spec",
      count: 1,
    }));
    await writer.flush(historyBatch({ contention: [{ object, conflicts: 20, pairs }] }));
  }
  expect(await reader.contention(object)).toHaveLength(64);
  expect((await reader.contentionReport(1)).contendedObjects).toEqual([{ object, conflicts: 100 }]);
});
