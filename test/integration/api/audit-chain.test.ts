import { openQueueAccess } from "@konverge/api";
import { Redis } from "ioredis";
import * as fc from "fast-check";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { AuditStream } from "../../../libs/api/src/audit/audit-chain.ts";
import { hashEntry, type ChainedEntry } from "../../../libs/api/src/audit/audit-hash.ts";
import { verifyStream } from "../../../libs/api/src/audit/verify-audit.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { seed } from "../../support/test-run.ts";

const queues = useQueues();
const KEY = "k".repeat(32);
const KEPT = 1_000;

const connections: Redis[] = [];
afterAll(() => Promise.all(connections.map((redis) => redis.quit())));
let streams = 0;

/** Writers of one new chain, each with a connection of its own. */
function writersOf(
  count: number,
  { key, kept = KEPT }: { readonly key?: string | undefined; readonly kept?: number } = {},
) {
  const stream = `${queues.prefix}:audit-${streams++}`;
  const writers = Array.from({ length: count }, (_, at) => {
    const redis = (connections[at] ??= new Redis(queues.apiUrl, { replyMapping: "legacy" }));
    return new AuditStream(redis, { chain: "changes", stream, kept, key });
  });
  const [first] = writers;
  if (first === undefined) throw new Error("no writer");
  const writerOf = (at: number): AuditStream => writers[at % writers.length] ?? first;
  return { stream, writers, first, writerOf };
}
const batchOf = (texts: readonly string[]) => ({ texts, tried: [] });

test("concurrent writers append to one chain", async () => {
  const { first, writerOf } = writersOf(4, { key: KEY });
  const texts = Array.from({ length: 200 }, (_, at) => `{"name":"n-${at}"}`);
  await Promise.all(texts.map((text, at) => writerOf(at).append(batchOf([text]))));
  const entries = await first.read("-");
  expect(entries.map(({ text }) => text).toSorted()).toEqual(texts.toSorted());
  const report = await verifyStream(first, { keys: [KEY] });
  expect(report).toMatchObject({ entries: 200, first: 1, last: 200 });
  expect(report.fault).toBeUndefined();
});

test("an append whose response was lost is not repeated", async () => {
  const { writers, first, stream } = writersOf(2);
  const [one, other] = writers as [AuditStream, AuditStream];
  await one.append(batchOf(['{"name":"a"}']));
  // As after a lost response: the entry is in Redis, and the writer has only the record of its try.
  const [landed] = await one.read("-");
  await other.append(batchOf(['{"name":"b"}']));
  await one.append({ texts: ['{"name":"a"}'], tried: [landed as ChainedEntry] });
  const texts = (await first.read("-")).map(({ text }) => text);
  expect(texts).toEqual(['{"name":"a"}', '{"name":"b"}']);
  expect(await queues.redis.xlen(stream)).toBe(2);
});

test("retention keeps a chain whose start can be verified", async () => {
  const { first } = writersOf(1, { kept: 100 });
  const texts = Array.from({ length: 750 }, (_, at) => `{"name":"n-${at}"}`);
  await first.append(batchOf(texts));
  const report = await verifyStream(first, { keys: [] });
  expect(report.first).toBeGreaterThan(1);
  expect(report.last).toBe(750);
  expect(report.fault).toBeUndefined();
  const [oldest] = await first.read("-", 1);
  // More than retention removes.
  for (const { id } of await first.read("-", report.entries - 50)) {
    await queues.redis.xdel(first.stream, id);
  }
  expect(oldest?.sequence).toBe(report.first);
  expect((await verifyStream(first, { keys: [] })).fault).toMatchObject({
    kind: "removed",
    sequence: 651,
  });
});

test("entries of an earlier version precede the chain; later ones are faults", async () => {
  const { first, stream } = writersOf(1);
  const { redis } = queues;
  await redis.xadd(stream, "*", "e", '{"name":"old"}');
  await first.append(batchOf(['{"name":"a"}', '{"name":"b"}']));
  expect(await verifyStream(first, { keys: [] })).toMatchObject({ unchained: 1, entries: 2 });
  expect((await verifyStream(first, { keys: [] })).fault).toBeUndefined();
  await redis.xadd(stream, "*", "e", '{"name":"old"}');
  await first.append(batchOf(['{"name":"c"}']));
  expect((await verifyStream(first, { keys: [] })).fault).toMatchObject({
    kind: "inserted",
    sequence: 3,
  });
  expect((await verifyStream(first, { keys: [], from: { changes: 3 } })).fault).toBeUndefined();
});

interface Row {
  readonly id: string;
  readonly fields: Record<string, string>;
}

/** Changes the rows, and returns the fault that names the change. */
function tamper(
  rows: Row[],
  kind: string,
  {
    at,
    other,
    isForged,
  }: { readonly at: number; readonly other: number; readonly isForged: boolean },
): readonly [kind: string, sequence: number] | undefined {
  const index = at % rows.length;
  const row = rows[index] as Row;
  switch (kind) {
    case "remove": {
      rows.splice(index, 1);
      return ["removed", index + 1];
    }
    case "alter": {
      const field = ["e", "n", "p", "h"][other % 4] ?? "";
      rows[index] = { ...row, fields: { ...row.fields, [field]: `${row.fields[field]}9` } };
      return ["altered", index + 1];
    }
    case "swap": {
      const to = other % rows.length;
      const partner = rows[to] as Row;
      rows[index] = { ...row, fields: partner.fields };
      rows[to] = { ...partner, fields: row.fields };
      return to === index ? undefined : ["altered", Math.min(to, index) + 1];
    }
    case "insert": {
      const [ms = "", sequence = ""] = row.id.split("-");
      const id = `${Number(ms) - 1}-${sequence}`;
      if (index > 0) return undefined;
      const entry = {
        chain: "changes",
        sequence: 1,
        id,
        text: '{"by":"eve"}',
        previous: "",
      } as const;
      const hash = isForged ? hashEntry(entry, undefined) : (row.fields["h"] ?? "");
      rows.unshift({ id, fields: { e: entry.text, n: "1", p: "", h: hash } });
      return ["inserted", 1];
    }
    case "append": {
      const last = rows.at(-1) as Row;
      const [ms = "", sequence = ""] = last.id.split("-");
      const id = `${ms}-${Number(sequence) + 1}`;
      const place = { chain: "changes", sequence: rows.length + 1, id } as const;
      const entry = { ...place, text: "{}", previous: last.fields["h"] ?? "" };
      const hash = hashEntry(entry, undefined);
      const fields = { e: "{}", n: String(entry.sequence), p: entry.previous, h: hash };
      rows.push({ id, fields });
      return [isForged ? "altered" : "inserted", rows.length];
    }
    case "start": {
      rows.splice(0, index + 1);
      return ["removed", 1];
    }
    case "end": {
      rows.splice(index);
      return ["removed", index + 1];
    }
    default:
      return undefined;
  }
}

test("names the first fault of a chain that was changed in Redis", async () => {
  const { redis } = queues;
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 6 }),
        key: fc.constantFrom(undefined, KEY),
        kind: fc.constantFrom(
          "none",
          "remove",
          "alter",
          "swap",
          "insert",
          "append",
          "start",
          "end",
        ),
        at: fc.nat(1_000),
        other: fc.nat(1_000),
      }),
      async ({ sizes, key, kind, at, other }) => {
        const { first, stream, writerOf } = writersOf(3, { key });
        await Promise.all(
          sizes.map((size, n) =>
            writerOf(n).append(
              batchOf(Array.from({ length: size }, (_, each) => `{"name":"n-${n}-${each}"}`)),
            ),
          ),
        );
        const rows = (await redis.xrange(stream, "-", "+")).map(([id, fields]): Row => {
          const pairs = fields.flatMap((name, index) =>
            index % 2 === 0 ? [[name, fields[index + 1] ?? ""]] : [],
          );
          return { id, fields: Object.fromEntries(pairs) as Record<string, string> };
        });
        expect(rows).toHaveLength(sizes.reduce((sum, size) => sum + size, 0));
        const isForged = key !== undefined;
        const expected = tamper(rows, kind, { at, other, isForged });
        await redis.del(stream);
        for (const { id, fields } of rows)
          await redis.xadd(stream, id, ...Object.entries(fields).flat());
        const keys = key === undefined ? [] : [key];
        const { fault } = await verifyStream(first, { keys });
        expect(fault && [fault.kind, fault.sequence]).toEqual(expected);
      },
    ),
    { numRuns: 60, seed },
  );
});

test("changes and refused changes of several API processes are two chains", async () => {
  const { apiTarget, prefix } = queues;
  const all = Array.from({ length: 3 }, () => {
    const access = openQueueAccess({
      redis: apiTarget,
      prefix,
      onError: () => undefined,
      auditKeys: [KEY],
    });
    onTestFinished(() => access.close());
    return access;
  });
  for (const [at, { audit }] of all.entries()) {
    for (let n = 0; n < 20; n++) {
      audit.gather({ action: "reconcile", by: `b-${at}`, name: `a-${n}`, count: 1 });
      audit.gather({ action: "refused", by: `b-${at}`, filter: `pause: ${n}`, count: 1 });
    }
  }
  await Promise.all(all.map(({ audit }) => audit.close()));
  const reports = await all[0]?.audit.verify();
  expect(reports).toMatchObject([
    { chain: "changes", entries: 60, first: 1, last: 60 },
    { chain: "refused", entries: 60, first: 1, last: 60 },
  ]);
  expect(reports?.every(({ fault }) => fault === undefined)).toBe(true);
});
