import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createHistoryWriter, type HistoryBatch } from "@konverge/queue";
import { announce } from "../integration/queue/announce.ts";
import {
  contest,
  figureOf,
  median,
  percentile,
  rateOf,
  type BenchOptions,
  type Figure,
} from "./measure.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";
import { startPeerProcess } from "./peer-process.ts";
import { attemptRow, historyBatch } from "../support/history-batch.ts";

const SUITE = "api";
const PREFIX = "bench";
const ROOT = `${PREFIX}:{default}`;
const TYPE = "nodepools.demo.konverge.dev";
const PORTS = { ours: 17_071, bare: 17_072 } as const;
const WIDTH = 16;
const SINGLES = 3_000;
const BATCHES = 60;
const PER_BATCH = 100;
const ROUNDS = 5;
const PER_OBJECT = 50;
const ROWS_PER_FLUSH = 500;
const READS = 200;
const POSTS = 1_000;
const POSTS_PER_S = 100;
const SEARCHES_PER_S = 20;

/**
 * Measures enqueueing over HTTP next to Hono with BullMQ and beside searches, and reads of an object with many stored
 * attempts.
 */
export async function benchApi({ log, long }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  await announce({ target: own, prefix: PREFIX });
  const children = (["ours", "bare"] as const).map((side) =>
    startPeerProcess(process.execPath, [
      "--conditions=@konverge/source",
      "test/bench/api-server.ts",
      side,
      own.url,
      String(PORTS[side]),
    ]),
  );
  const agent = new Agent({ keepAlive: true, maxSockets: WIDTH });
  try {
    await Promise.all(children.map(({ ready }) => ready));
    const figures = await enqueue(agent);
    await own.redis.flushall();
    figures.push(...(await readObjects(own, agent, long ? 1_000_000 : 50_000, log)));
    return [...figures, ...(await enqueueBesideSearch(agent))];
  } finally {
    agent.destroy();
    await Promise.all(children.map((child) => child.stop()));
  }
}

async function enqueue(agent: Agent): Promise<Figure[]> {
  let serial = 0;
  const item = () => ({
    controller: "node-pool",
    namespace: "team-a",
    name: `pool-${serial++}`,
    reason: "deploy 4711",
  });
  const single = (side: keyof typeof PORTS) => () =>
    rateOf(SINGLES, WIDTH, () => send(agent, side, "POST", "/v1/reconciles", item()));
  const batch = (side: keyof typeof PORTS) => async () => {
    const rate = await rateOf(BATCHES, WIDTH / 4, () =>
      send(agent, side, "POST", "/v1/reconciles/batch", {
        items: Array.from({ length: PER_BATCH }, item),
      }),
    );
    return rate * PER_BATCH;
  };
  const common = { suite: SUITE, metric: "requests accepted", unit: "/s", rounds: ROUNDS };
  const peer = (name: string, side: () => Promise<number>) => [{ name, side, goal: 0.8 }];
  return [
    ...(await contest({
      ...common,
      case: `enqueue over HTTP, ${WIDTH} connections`,
      ours: single("ours"),
      peers: peer("Hono and BullMQ add", single("bare")),
    })),
    ...(await contest({
      ...common,
      case: `enqueue over HTTP in batches of ${PER_BATCH}`,
      ours: batch("ours"),
      peers: peer("Hono and BullMQ addBulk", batch("bare")),
    })),
  ];
}

/** Reads objects with 50 attempts each, among the given number of stored attempts. */
async function readObjects(
  own: OwnRedis,
  agent: Agent,
  attempts: number,
  log: (line: string) => void,
): Promise<Figure[]> {
  const objects = attempts / PER_OBJECT;
  log(`api: storing ${attempts} attempts`);
  const emptyBytes = await own.usedMemory();
  await store(own, objects);
  const perAttempt = ((await own.usedMemory()) - emptyBytes) / attempts;
  await announce({ target: own, prefix: PREFIX });
  const tookMs: number[] = [];
  for (let read = 0; read < READS; read++) {
    const path = `/v1/objects/default/node-pool/team-a/pool-${Math.floor(Math.random() * objects)}`;
    const startedMs = performance.now();
    await Promise.all([
      send(agent, "ours", "GET", path),
      send(agent, "ours", "GET", `${path}/contention`),
    ]);
    tookMs.push(performance.now() - startedMs);
  }
  const what = { suite: SUITE, case: `${attempts} attempts stored, ${PER_OBJECT} per object` };
  return [
    figureOf({
      ...what,
      metric: "object page, median",
      unit: "ms",
      ours: [median(tookMs)],
      goal: 50,
      goalIs: "most",
    }),
    figureOf({
      ...what,
      metric: "object page, p99",
      unit: "ms",
      ours: [percentile(tookMs, 0.99)],
      goal: 50,
      goalIs: "most",
    }),
    figureOf({ ...what, metric: "Redis memory per attempt", unit: "bytes", ours: [perAttempt] }),
  ];
}

/**
 * Measures requests sent at a steady rate, alone and while a viewer searches all stored attempts for a name that none has.
 * Both are measured in turn.
 */
async function enqueueBesideSearch(agent: Agent): Promise<Figure[]> {
  let serial = 0;
  const enqueueOne = async () => {
    const name = `beside-${serial++}`;
    const startedMs = performance.now();
    const body = { controller: "node-pool", namespace: "team-a", name };
    await send(agent, "ours", "POST", "/v1/reconciles", body);
    return performance.now() - startedMs;
  };
  // A caller may run a few searches at a time; the API rejects others with 429.
  const statuses: number[] = [];
  const search = async (viewer: Agent) => {
    statuses.push(await statusOf(viewer, "ours", "GET", "/v1/attempts?name=no-such-name"));
  };
  const p99 = async (isSearching: boolean) => {
    const sent: Promise<number>[] = [];
    const searches: Promise<void>[] = [];
    const viewer = new Agent({ keepAlive: true });
    await atRate(POSTS_PER_S, POSTS, (at) => {
      sent.push(enqueueOne());
      if (isSearching && at % (POSTS_PER_S / SEARCHES_PER_S) === 0) searches.push(search(viewer));
    });
    await Promise.all(searches);
    viewer.destroy();
    return percentile(await Promise.all(sent), 0.99);
  };
  const what = {
    suite: SUITE,
    case: `enqueue at ${POSTS_PER_S}/s beside ${SEARCHES_PER_S} searches/s without matches`,
  };
  const times = await contest({
    ...what,
    metric: "p99",
    unit: "ms",
    goalIs: "most",
    ours: () => p99(true),
    peers: [{ name: "without searches", side: () => p99(false), goal: 2 }],
    rounds: 3,
  });
  const answered = statuses.filter((status) => status === 200).length / statuses.length;
  return [
    ...times,
    figureOf({ ...what, metric: "searches answered", unit: "%", ours: [100 * answered] }),
  ];
}

/** Calls `work` `count` times, `perS` times per second. Calls that are late are made at once. */
async function atRate(perS: number, count: number, work: (at: number) => void): Promise<void> {
  const startMs = performance.now();
  for (let at = 0; at < count; at++) {
    const waitMs = startMs + (1_000 * at) / perS - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    work(at);
  }
}

/** Stores one object in the queue's format, copies it to all other keys and adds an index row for each attempt. */
async function store({ url, redis }: OwnRedis, objects: number): Promise<void> {
  const idOf = (serial: number) => `node-pool/default/${TYPE}/team-a/pool-${serial}`;
  const record = JSON.stringify({ ...RECORD, id: `${idOf(0)}#1`, key: idOf(0) });
  const entry = `1800000000012\n[1,1,1800000000000,"done","bench-host-12345","",""]\n${record}`;
  await redis.rpush(`${ROOT}/attempts/${idOf(0)}`, ...Array<string>(PER_OBJECT).fill(entry));
  await redis.hset(`${ROOT}/key/${idOf(0)}`, {
    requested: 1,
    covered: 1,
    attempts: 0,
    epoch: PER_OBJECT,
    outcome: "done",
  });
  const writer = createHistoryWriter({
    redis: { url },
    prefix: PREFIX,
    cluster: "default",
    budgetBytes: 2 ** 40,
    onError: (error) => {
      throw error;
    },
  });
  for (let serial = 0; serial < objects; serial++) {
    const pipeline = redis.pipeline();
    for (const what of ["attempts", "key"]) {
      if (serial > 0)
        pipeline.copy(`${ROOT}/${what}/${idOf(0)}`, `${ROOT}/${what}/${idOf(serial)}`);
    }
    await pipeline.exec();
    if ((serial * PER_OBJECT) % ROWS_PER_FLUSH === 0) await writer.flush(batchOf(idOf(serial)));
  }
  await writer.close();
}

function batchOf(key: string): HistoryBatch {
  const rows = Array.from({ length: ROWS_PER_FLUSH }, (_, at) => ({
    row: attemptRow({
      key,
      epoch: at,
      startedAtMs: 1_800_000_000_000 + at,
      durationMs: 12,
      worker: "bench-host-12345",
    }),
    recordBytes: 900,
  }));
  return historyBatch({ rows });
}

/** The engine's record of an attempt that a watch triggered and that wrote its status. */
const RECORD = {
  epoch: 1,
  controller: "node-pool",
  uid: "0b7c2f6e-6d4e-4a39-9c53-3f2f4d1f9f11",
  attempt: 1,
  worker: "bench-host-12345",
  triggers: [{ kind: "watch", by: "watch nodepools", resourceVersion: "1234567", generation: 3 }],
  requestedAt: "2027-01-15T08:00:00.000Z",
  startedAt: "2027-01-15T08:00:00.003Z",
  finishedAt: "2027-01-15T08:00:00.015Z",
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
      resource: TYPE,
      namespace: "team-a",
      name: "pool-0",
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
} as const;

/** Fails unless the request succeeds. */
async function send(...sent: Parameters<typeof statusOf>): Promise<void> {
  const status = await statusOf(...sent);
  if (status >= 300) throw new Error(`${sent[2]} ${sent[3]} returned ${status}`);
}

/** Uses Node's own client, because `fetch` would cost more than the measured code. */
async function statusOf(
  agent: Agent,
  side: keyof typeof PORTS,
  method: string,
  path: string,
  body?: unknown,
): Promise<number> {
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(
    { agent, host: "127.0.0.1", port: PORTS[side], method, path, headers },
    (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
    },
  );
  sent.once("error", reject);
  sent.end(text);
  return await promise;
}
