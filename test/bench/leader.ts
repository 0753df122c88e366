import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ApiObject } from "@konverge/core";
import { defineController } from "@konverge/engine";
import { createReflector, type KubeClient } from "@konverge/kube";
import { createWorkQueue } from "@konverge/queue";
import { Redis } from "ioredis";
import { createRequestSource } from "../../libs/engine/src/watch/request-source.ts";
import { readWatch } from "../../libs/kube/src/wire/watch.ts";
import { Gauge } from "./gauge.ts";
import { figureOf, median, round2, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis, type OwnRedis } from "./own-redis.ts";

const OBJECTS = 2_000;
/** Changes of each object. */
const TIMES = 15;
const CHANGES = OBJECTS * TIMES;
const EVENTS_PER_CHUNK = 32;
const ROUNDS = 5;
/** In each direction, so that a round trip takes 2.5 ms. */
const DELAY_MS = 1.25;
const PINGS = 200;

/** What a run of all changes has cost. */
interface Run {
  readonly perSecond: number;
  readonly scripts: number;
  /** CPU time per change of this process, in microseconds. */
  readonly cpuUs: number;
  /** The same of Redis. */
  readonly redisCpuUs: number;
}

/**
 * Measures the changes of a watch per second until Redis has accepted their requests: parsing, cache, predicate, queue. The
 * events are in memory, because an API server on the same machine would be the limit.
 */
export async function benchLeader({ log }: BenchOptions): Promise<Figure[]> {
  await using redis = await startOwnRedis(log);
  await using far = await startDelayProxy(redis.url);
  const chunks = makeChunks();
  const sides = [
    { name: "local Redis", url: redis.url, goal: 15_000, runs: new Array<Run>() },
    { name: "Redis at 2.5 ms per round trip", url: far.url, goal: 5_000, runs: new Array<Run>() },
  ];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, url, runs } of sides) {
      const run = await lead(redis, url, chunks);
      if (round > 0) runs.push(run);
      log(
        `leader: round ${round}, ${name}, round trip ${round2(await roundTripMs(url))} ms: ${Math.round(run.perSecond)}/s, ${round2(run.cpuUs)} us of CPU, ${round2(run.redisCpuUs)} us of Redis and ${round2(run.scripts)} script calls per change`,
      );
    }
  }
  return sides.flatMap(({ name, goal, runs }) => {
    const what = { suite: "leader", case: `changes of ${OBJECTS} objects, ${name}` };
    const of = (read: (run: Run) => number) => runs.map(read);
    return [
      figureOf({
        ...what,
        metric: "accepted requests",
        unit: "1/s",
        ours: of((run) => run.perSecond),
        goal,
      }),
      figureOf({
        ...what,
        metric: "script calls per change",
        unit: "calls",
        ours: of((run) => run.scripts),
      }),
      figureOf({
        ...what,
        metric: "CPU of the leader per change",
        unit: "us",
        ours: of((run) => run.cpuUs),
      }),
      figureOf({
        ...what,
        metric: "CPU of Redis per change",
        unit: "us",
        ours: of((run) => run.redisCpuUs),
      }),
    ];
  });
}

async function lead(redis: OwnRedis, url: string, chunks: readonly Uint8Array[]): Promise<Run> {
  const queue = createWorkQueue({
    redis: { url },
    controller: "bench",
    cluster: "default",
    prefix: `bench-${randomUUID()}`,
    onError: (error) => console.error(`bench: ${error.message}`),
  });
  // Opens the connection and loads the script.
  await queue.requestAt(keyOf("first"), Date.now() + 3_600_000);
  await queue.request(keyOf("first"), { kind: "watch" });
  const controller = defineController({
    name: "bench",
    for: Gauge,
    reconcile: async () => undefined,
  });
  let accepted = 0;
  const allAccepted = Promise.withResolvers<void>();
  const submit: typeof queue.submit = async (...request) => {
    await queue.submit(...request);
    if (++accepted === CHANGES + OBJECTS) allAccepted.resolve();
  };
  const source = createRequestSource(
    controller,
    { ...queue, submit },
    { log: silent, isSensitive: () => false, onError: allAccepted.reject },
  );
  const listed = Promise.withResolvers<void>();
  const reflector = createReflector<ApiObject>({
    client: clientOf(chunks, listed.promise),
    type: Gauge,
    onEvent: (change) =>
      source.onChange(
        controller.sources[0],
        { ...change, seen: { gauges: change.version } },
        () => undefined,
      ),
    onError: allAccepted.reject,
  });
  reflector.start();
  await reflector.synced;
  while (accepted < OBJECTS) await new Promise((resolve) => setTimeout(resolve, 5));
  const before = await redis.totals();
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  listed.resolve();
  await allAccepted.promise;
  const tookMs = performance.now() - startedMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { scripts, cpuUs } = await redis.totals();
  await reflector.stop();
  await queue.close();
  return {
    perSecond: (CHANGES * 1_000) / tookMs,
    scripts: (scripts - before.scripts) / CHANGES,
    cpuUs: (user + system) / CHANGES,
    redisCpuUs: (cpuUs - before.cpuUs) / CHANGES,
  };
}

/** The list and the watch of a server, from memory. The watch begins with `start`. */
function clientOf(chunks: readonly Uint8Array[], start: Promise<void>): KubeClient {
  const calls: Pick<KubeClient, "listPage" | "watch"> = {
    listPage: async () => ({
      items: Array.from({ length: OBJECTS }, (_, n) => gauge(n, 0)) as never[],
      resourceVersion: "1",
    }),
    watch: (_type, { signal } = {}) =>
      readWatch(eventsAfter(start, chunks, signal), {
        type: Gauge,
        ref: Gauge,
        sensitive: false,
      }),
  };
  return calls as KubeClient;
}

async function* eventsAfter(
  start: Promise<void>,
  chunks: readonly Uint8Array[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  await start;
  for (const chunk of chunks) {
    // As between two reads of a socket.
    await setImmediate();
    yield chunk;
  }
  if (signal !== undefined && !signal.aborted) await once(signal, "abort");
}

function makeChunks(): Uint8Array[] {
  const lines = Array.from({ length: CHANGES }, (_, n) => {
    const object = gauge(n % OBJECTS, 1 + Math.floor(n / OBJECTS), n + 2);
    return `${JSON.stringify({ type: "MODIFIED", object })}\n`;
  });
  const chunks: Uint8Array[] = [];
  for (let first = 0; first < lines.length; first += EVENTS_PER_CHUNK)
    chunks.push(Buffer.from(lines.slice(first, first + EVENTS_PER_CHUNK).join("")));
  return chunks;
}

function gauge(n: number, step: number, version = 1): ApiObject & { spec: { step: number } } {
  return {
    apiVersion: "bench.konverge.dev/v1",
    kind: "Gauge",
    metadata: {
      namespace: "default",
      name: `gauge-${n}`,
      uid: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
      resourceVersion: String(version),
      generation: step + 1,
      managedFields: [
        {
          manager: "bench",
          operation: "Update",
          apiVersion: "bench.konverge.dev/v1",
          time: "2026-01-01T00:00:00Z",
          fieldsType: "FieldsV1",
          fieldsV1: { "f:spec": { ".": {}, "f:step": {} } },
        },
      ],
    },
    spec: { step },
  };
}

const keyOf = (name: string) => ({
  controller: "bench",
  cluster: "default",
  resource: Gauge.resource,
  group: Gauge.group,
  namespace: "default",
  name,
});
const nothing = () => undefined;
const silent = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  child: () => silent,
};

async function roundTripMs(url: string): Promise<number> {
  const redis = new Redis(url);
  const times: number[] = [];
  for (let n = 0; n < PINGS; n++) {
    const atMs = performance.now();
    await redis.ping();
    times.push(performance.now() - atMs);
  }
  redis.disconnect();
  return median(times);
}

/** Starts a process that delays all data between a client and Redis. */
async function startDelayProxy(
  redisUrl: string,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const program = fileURLToPath(new URL("delay-proxy.ts", import.meta.url));
  const { port } = new URL(redisUrl);
  const child = spawn(process.execPath, [program, port, String(DELAY_MS)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, "line")) as [string];
  return {
    url: `redis://127.0.0.1:${line.replace("port ", "")}`,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.stdin.end();
      await ended;
    },
  };
}
