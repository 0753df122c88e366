import { randomUUID } from "node:crypto";
import type { ObjectKey } from "@konverge/core";
import { createWorkQueue, type QueueWorker } from "@konverge/queue";
import { figureOf, percentile, round2, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";

const CONTROLLER = "bench";
const ROUNDS = 5;
const EVENTS = 500;
const EVENTS_PER_SECOND = 100;
/** The mean of a handler with some calls of the API server. */
const HANDLER_MS = 20;
/** Multiples of the golden ratio are spread evenly. */
const GOLDEN = 0.618_033_988_75;
const CONCURRENCY = 16;
const REQUESTED_AT_ONCE = 500;
const BACKLOGS = { none: 0, small: 500, large: 50_000 };
const MAX_RATIO = 1.1;

type Backlog = keyof typeof BACKLOGS;

interface Latencies {
  readonly startMs: readonly number[];
  readonly endMs: readonly number[];
}

/**
 * Measures from the request for an event of one tenant to the start and the end of its attempt, while another tenant has no
 * background requests, 500, and 50,000. Two queues with different backlogs get their events in turn at the same time, so
 * that the load of the machine affects both. The number of waiting requests stays constant: each attempt requests its key
 * again.
 */
export async function benchTenants({ log }: BenchOptions): Promise<Figure[]> {
  await using redis = await startOwnRedis(log);
  const figures: Figure[] = [];
  for (const peer of ["none", "small"] as const) {
    const rounds: Record<"large" | "peer", Latencies>[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      const found = await compare(redis.url, peer);
      rounds.push(found);
      const p99s = Object.entries(found).map(
        ([name, { startMs, endMs }]) =>
          `${name}: start ${round2(percentile(startMs, 0.99))}, end ${round2(percentile(endMs, 0.99))}`,
      );
      log(`tenants: beside ${BACKLOGS[peer]}, round ${round}, p99 in ms, ${p99s.join("; ")}`);
    }
    figures.push(...figuresOf(peer, rounds));
  }
  return figures;
}

function figuresOf(
  peer: "none" | "small",
  rounds: readonly Record<"large" | "peer", Latencies>[],
): Figure[] {
  return (["startMs", "endMs"] as const).flatMap((moment) =>
    [0.5, 0.99].map((share) => {
      const of = (side: "large" | "peer") =>
        rounds.map((round) => percentile(round[side][moment], share));
      return figureOf({
        suite: "tenants",
        case: `events with ${BACKLOGS.large} background requests of another tenant`,
        metric: `request to ${moment === "startMs" ? "start" : "end"}, p${share * 100}`,
        unit: "ms",
        ours: of("large"),
        peer: { name: `with ${BACKLOGS[peer]}`, values: of("peer") },
        goal: share === 0.99 ? MAX_RATIO : null,
        goalIs: "most",
      });
    }),
  );
}

async function compare(url: string, peer: Backlog): Promise<Record<"large" | "peer", Latencies>> {
  await using large = await openSide(url, BACKLOGS.large);
  await using other = await openSide(url, BACKLOGS[peer]);
  const sides = [large, other];
  for (const side of sides) side.work();
  const firstAtMs = performance.now();
  for (let n = 0; n < EVENTS; n++) {
    await delay(firstAtMs + (n * 1_000) / EVENTS_PER_SECOND - performance.now());
    // In turn, because the first one wakes Redis.
    for (const side of n % 2 === 0 ? sides : sides.toReversed()) await side.request(n);
  }
  await Promise.all(sides.map((side) => side.ended));
  return { large: large.latencies, peer: other.latencies };
}

interface Side extends AsyncDisposable {
  readonly latencies: Latencies;
  /** Resolves when all events have ended. */
  readonly ended: Promise<void>;
  work(): void;
  request(n: number): Promise<void>;
}

/** A queue with a backlog of one tenant, and a worker for it. */
async function openSide(url: string, backlog: number): Promise<Side> {
  const queue = createWorkQueue({
    redis: { url },
    controller: CONTROLLER,
    cluster: "default",
    prefix: `bench-${randomUUID()}`,
  });
  const requestAgain = (key: ObjectKey) =>
    queue.request(key, { kind: "resync" }, { class: "background" });
  for (let first = 0; first < backlog; first += REQUESTED_AT_ONCE) {
    const part = Array.from({ length: REQUESTED_AT_ONCE }, (_, n) => keyOf("a", first + n));
    await Promise.all(part.map(requestAgain));
  }
  const startMs: number[] = [];
  const endMs: number[] = [];
  let handled = 0;
  // From half to one and a half of the mean: with equal times, all slots would become free at once.
  const handlerMs = () => HANDLER_MS * (0.5 + ((handled++ * GOLDEN) % 1));
  const requestedAtMs = new Map<string, number>();
  const ended = Promise.withResolvers<void>();
  const sinceRequest = ({ name }: ObjectKey) => performance.now() - (requestedAtMs.get(name) ?? 0);
  const workers: QueueWorker[] = [];
  return {
    latencies: { startMs, endMs },
    ended: ended.promise,
    work() {
      const worker = queue.work({
        workerId: "bench",
        concurrency: CONCURRENCY,
        async handle({ key }) {
          const isEvent = key.namespace === "b";
          if (isEvent) startMs.push(sinceRequest(key));
          await delay(handlerMs());
          if (isEvent) endMs.push(sinceRequest(key));
          else await requestAgain(key);
          if (endMs.length === EVENTS) ended.resolve();
          return { outcome: { kind: "done" } };
        },
        onError: ended.reject,
      });
      workers.push(worker);
    },
    async request(n) {
      const key = keyOf("b", n);
      requestedAtMs.set(key.name, performance.now());
      await queue.request(key, { kind: "watch" }, { class: "event" });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await queue.close();
    },
  };
}

function keyOf(namespace: string, n: number): ObjectKey {
  return {
    controller: CONTROLLER,
    cluster: "default",
    resource: "configmaps",
    group: "",
    namespace,
    name: `object-${n}`,
  };
}

async function delay(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}
