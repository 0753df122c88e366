import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, appendFileSync, readFileSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { verifyAuditLines } from "@konverge/api";
import { AuditStream } from "../../../libs/api/src/audit/audit-chain.ts";
import { startAuditExport } from "../../../libs/api/src/audit/audit-export.ts";
import {
  fileTarget,
  httpTarget,
  type AuditTarget,
} from "../../../libs/api/src/audit/audit-target.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";

const queues = useQueues();
const noError = (error: Error) => expect.unreachable(error.message);

function open() {
  const { redis, prefix } = queues;
  const root = `${prefix}:audit`;
  const streamOf = (chain: "changes" | "refused", stream: string) =>
    new AuditStream(redis, { chain, stream, kept: 1_000, key: undefined });
  const changes = streamOf("changes", root);
  const refused = streamOf("refused", `${root}-refused`);
  let names = 0;
  const add = async (count: number) => {
    for (const stream of [changes, refused]) {
      const texts = Array.from({ length: count }, () => `{"name":"n-${names++}"}`);
      await stream.append({ texts, tried: [] });
    }
  };
  const run = (target: AuditTarget, onError: (error: Error) => void = noError) => {
    const streams = [changes, refused];
    const started = startAuditExport({ redis, root, streams, target, onError, pollMs: 10 });
    onTestFinished(() => started.stop());
    return started;
  };
  return { add, run };
}

const linesIn = (file: string) => {
  try {
    return readFileSync(file, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
};

async function verify(lines: readonly string[]) {
  async function* each() {
    yield* lines;
  }
  return await verifyAuditLines(each(), { keys: [], from: { changes: 1, refused: 1 } });
}

test("a file has every entry once, over restarts, a rotation and a torn line", async () => {
  const { add, run } = open();
  const file = join(mkdtempSync(join(tmpdir(), "audit-")), "audit.jsonl");
  await add(700);
  const first = run(fileTarget(file));
  await until("all are written", () => linesIn(file).length === 1_400);
  await first.stop();
  await add(5);
  renameSync(file, `${file}.1`);
  const second = run(fileTarget(file));
  await until("the new ones are written", () => linesIn(file).length === 10);
  await second.stop();
  // As after a crash during a write.
  appendFileSync(file, '{"chain":"changes","seq');
  await add(2);
  run(fileTarget(file));
  await until("the last ones are written", () => linesIn(file).length === 14);
  const reports = await verify([...linesIn(`${file}.1`), ...linesIn(file)]);
  expect(reports).toMatchObject([
    { chain: "changes", entries: 707, last: 707 },
    { chain: "refused", entries: 707, last: 707 },
  ]);
  expect(reports.every(({ fault }) => fault === undefined)).toBe(true);
});

test("one process at a time delivers, and another continues after it", async () => {
  const { add, run } = open();
  const seen: string[] = [];
  const targetOf = (process: string): AuditTarget => ({
    sink: "http",
    name: "shared",
    async deliver(entries) {
      seen.push(...entries.map(({ chain, sequence }) => `${process} ${chain} ${sequence}`));
    },
  });
  const one = run(targetOf("one"));
  await add(3);
  await until("one delivers", () => seen.length === 6);
  run(targetOf("two"));
  await add(3);
  await until("the rest is delivered", () => seen.length === 12);
  expect(seen.every((entry) => entry.startsWith("one "))).toBe(true);
  await one.stop();
  await add(1);
  await until("two continues", () => seen.length === 14);
  expect(seen.slice(12).toSorted()).toEqual(["two changes 7", "two refused 7"]);
});

test("a receiver that fails gets the entries again, with the same key, and loses none", async () => {
  const { add, run } = open();
  const lines: string[] = [];
  const keys: string[] = [];
  const authors = new Set<string | undefined>();
  let requests = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    requests += 1;
    keys.push(String(request.headers["idempotency-key"]));
    authors.add(request.headers.authorization);
    // The first response is an error, and the second one is lost.
    if (requests === 1) return response.writeHead(503).end();
    lines.push(...body.split("\n").slice(0, -1));
    if (requests === 2) return request.socket.destroy();
    return response.writeHead(204).end();
  };
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const errors: Error[] = [];
  await add(4);
  const url = `http://127.0.0.1:${port}/audit?secret=hidden`;
  run(httpTarget(url, { token: "secret" }), (error) => errors.push(error));
  await until("all are delivered", () => lines.length === 12);
  expect(keys[0]).toMatch(/^changes-1-4-sha256:/);
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).toBe(keys[0]);
  expect([...authors]).toEqual(["Bearer secret"]);
  expect(errors).toHaveLength(2);
  expect(errors.map(({ message }) => message).join()).not.toContain("hidden");
  const reports = await verify(lines);
  expect(reports).toMatchObject([{ last: 4 }, { last: 4 }]);
  expect(reports.every(({ fault }) => fault === undefined)).toBe(true);
});

test("entries that retention removes before the delivery are counted once, also by the next process", async () => {
  const { add, run } = open();
  const { redis, prefix } = queues;
  const delivered: number[] = [];
  let isAway = false;
  const target: AuditTarget = {
    sink: "http",
    name: "http receiver",
    async deliver(entries) {
      if (isAway) throw new Error("away");
      delivered.push(...entries.map(({ sequence }) => sequence));
    },
  };
  const first = run(target, () => undefined);
  await add(3);
  await until("they are delivered", () => delivered.length === 6);
  isAway = true;
  await add(5);
  // Removes entries 4 to 6 of one chain.
  const rows = await redis.xrange(`${prefix}:audit`, "-", "+");
  await redis.xtrim(`${prefix}:audit`, "MINID", rows[6]?.[0] ?? "");
  await until("the gap is found", async () => (await first.read()).lost === 3);
  await first.stop();
  const second = run(target, () => undefined);
  isAway = false;
  await until("the others are delivered", () => delivered.length === 6 + 2 + 5);
  await add(1);
  await until("the next ones are delivered", () => delivered.length === 6 + 2 + 5 + 2);
  expect(await second.read()).toMatchObject({ lost: 3, lagMs: 0 });
  expect((await second.read()).lostAtMs).toBeGreaterThan(Date.now() - 600_000);
});

test("entries from before the first start of a stream are not lost", async () => {
  const { add, run } = open();
  const { redis, prefix } = queues;
  await add(5);
  const rows = await redis.xrange(`${prefix}:audit`, "-", "+");
  await redis.xtrim(`${prefix}:audit`, "MINID", rows[3]?.[0] ?? "");
  const file = join(mkdtempSync(join(tmpdir(), "audit-")), "audit.jsonl");
  const started = run(fileTarget(file));
  await until("the present ones are written", () => linesIn(file).length === 7);
  expect(await started.read()).toMatchObject({ lost: 0 });
});
