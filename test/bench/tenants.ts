import { randomUUID } from "node:crypto";
import type { ObjectKey } from "@konverge/core";
import { createWorkQueue } from "@konverge/queue";
import { figureOf, percentile, round2, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";

const CONTROLLER = "bench";
const ROUNDS = 3;
const EVENTS = 500;
const EVENTS_PER_SECOND = 100;
/** A handler with some calls of the API server. */
const HANDLER_MS = 20;
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
 * background requests, 500, and 50,000. The number of waiting requests stays constant: each attempt requests its key again.
 */
export async function benchTenants({ log }: BenchOptions): Promise<Figure[]> {
  await using redis = await startOwnRedis(log);
  const rounds: Record<Backlog, Latencies>[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const none = await eventsBeside(redis.url, BACKLOGS.none);
    const small = await eventsBeside(redis.url, BACKLOGS.small);
    const large = await eventsBeside(redis.url, BACKLOGS.large);
    rounds.push({ none, small, large });
    const p99s = Object.entries(rounds.at(-1) ?? {}).map(
      ([name, { startMs, endMs }]) =>
        `${name}: start ${round2(percentile(startMs, 0.99))}, end ${round2(percentile(endMs, 0.99))}`,
    );
    log(`tenants: round ${round}, p99 in ms, ${p99s.join("; ")}`);
  }
  return (["none", "small"] as const).flatMap((peer) =>
    (["startMs", "endMs"] as const).flatMap((moment) =>
      [0.5, 0.99].map((share) => {
        const of = (backlog: Backlog) =>
          rounds.map((round) => percentile(round[backlog][moment], share));
        return figureOf({
          suite: "tenants",
          case: `events with ${BACKLOGS.large} background requests of another tenant`,
          metric: `request to ${moment === "startMs" ? "start" : "end"}, p${share * 100}`,
          unit: "ms",
          ours: of("large"),
          peer: { name: `with ${BACKLOGS[peer]}`, values: of(peer) },
          goal: share === 0.99 ? MAX_RATIO : null,
          goalIs: "most",
        });
      }),
    ),
  );
}

async function eventsBeside(url: string, backlog: number): Promise<Latencies> {
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
  const requestedAtMs = new Map<string, number>();
  const ended = Promise.withResolvers<void>();
  const sinceRequest = ({ name }: ObjectKey) => performance.now() - (requestedAtMs.get(name) ?? 0);
  const worker = queue.work({
    workerId: "bench",
    concurrency: CONCURRENCY,
    async handle({ key }) {
      const isEvent = key.namespace === "b";
      if (isEvent) startMs.push(sinceRequest(key));
      await delay(HANDLER_MS);
      if (isEvent) endMs.push(sinceRequest(key));
      else await requestAgain(key);
      if (endMs.length === EVENTS) ended.resolve();
      return { outcome: { kind: "done" } };
    },
    onError: ended.reject,
  });
  const firstAtMs = performance.now();
  for (let n = 0; n < EVENTS; n++) {
    await delay(firstAtMs + (n * 1_000) / EVENTS_PER_SECOND - performance.now());
    const key = keyOf("b", n);
    requestedAtMs.set(key.name, performance.now());
    await queue.request(key, { kind: "watch" }, { class: "event" });
  }
  await ended.promise;
  await worker.stop();
  await queue.close();
  return { startMs, endMs };
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
