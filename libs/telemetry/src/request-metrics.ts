import type { TriggerKind } from "@konverge/core";
import { Counter, Gauge, type Registry } from "prom-client";
import { Observed } from "./observed.ts";

/** The metrics before an attempt: watches, leadership, requests, the queue. */
export interface RequestMetrics {
  /**
   * Reports a queue at each scrape while `isLeader`. All processes share the queue, so a sum over all of them would be wrong.
   * Queues of one name, in several clusters, count together. Returns the function that ends it.
   */
  observeQueue(controller: string, queue: ObservedQueue): () => void;
  /** An acknowledged request of this process. */
  requested(request: {
    readonly controller: string;
    readonly trigger: TriggerKind;
    readonly coalesced: boolean;
  }): void;
  /**
   * Adds a watch of a resource, `plural.group`. `measure` returns the size of its cache, at each scrape. Returns the function that
   * removes the cache.
   */
  addWatch(resource: string, measure: () => CacheSize): () => void;
  watchInterrupted(resource: string): void;
  /** The size of the cache of each watched resource. Serializes up to 100 objects of each. */
  measureCaches(): readonly (CacheSize & { readonly resource: string })[];
  /** A predicate, `map` or index function of a controller threw, or `map` returned an invalid name. */
  watchFunctionFailed(controller: string, name: "predicate" | "map" | "index"): void;
}

interface CacheSize {
  readonly objects: number;
  /** As JSON. */
  readonly bytes: number;
}

export interface ObservedQueue {
  readonly isLeader: () => boolean;
  readonly counts: () => Promise<{
    readonly waiting: number;
    readonly delayed: number;
    /** Age of the key that starts next. */
    readonly headAgeMs: number;
  }>;
}

export function createRequestMetrics(registry: Registry): RequestMetrics {
  const registers = [registry];
  const queues = new Observed<ObservedQueue>();
  const adds = new Counter({
    name: "konverge_workqueue_adds_total",
    help: "Total number of keys added to the queue.",
    labelNames: ["name", "controller"],
    registers,
  });
  const requests = new Counter({
    name: "konverge_requests_total",
    help: "Total number of acknowledged requests by trigger and coalescing.",
    labelNames: ["controller", "trigger", "coalesced"],
    registers,
  });
  const interruptions = new Counter({
    name: "konverge_watch_interruptions_total",
    help: "Total number of watches that were interrupted and restarted.",
    labelNames: ["resource"],
    registers,
  });
  const functionErrors = new Counter({
    name: "konverge_watch_function_errors_total",
    help: "Total number of errors in predicates, map and index functions, including invalid names.",
    labelNames: ["controller", "function"],
    registers,
  });
  createQueueGauges(registry, queues);
  const caches = new Observed<() => CacheSize>();
  createCacheGauges(registry, caches);
  const leading: Gauge<"name"> = new Gauge({
    name: "konverge_leader_election_master_status",
    help: "1 if this process leads the controller, else 0.",
    labelNames: ["name"],
    registers,
    collect() {
      leading.reset();
      for (const [name, observed] of queues) {
        const isLeading = [...observed].some(({ isLeader }) => isLeader());
        leading.set({ name }, isLeading ? 1 : 0);
      }
    },
  });

  return {
    observeQueue(controller, queue) {
      adds.inc({ name: controller, controller }, 0);
      for (const name of ["predicate", "map", "index"])
        functionErrors.inc({ controller, function: name }, 0);
      return queues.add(controller, queue);
    },
    requested({ controller, trigger, coalesced }) {
      requests.inc({ controller, trigger, coalesced: String(coalesced) });
      if (!coalesced) adds.inc({ name: controller, controller });
    },
    addWatch(resource, measure) {
      interruptions.inc({ resource }, 0);
      return caches.add(resource, measure);
    },
    measureCaches: () => measureCaches(caches),
    watchInterrupted: (resource) => interruptions.inc({ resource }),
    watchFunctionFailed: (controller, name) => functionErrors.inc({ controller, function: name }),
  };
}

/** Several watches of a kind count together. */
function measureCaches(
  caches: Observed<() => CacheSize>,
): (CacheSize & { readonly resource: string })[] {
  return [...caches].map(([resource, measures]) => {
    const sizes = [...measures].map((measure) => measure());
    return {
      resource,
      objects: sizes.reduce((sum, { objects }) => sum + objects, 0),
      bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  });
}

function createCacheGauges(registry: Registry, caches: Observed<() => CacheSize>): void {
  const cacheGauge = (name: keyof CacheSize, help: string) =>
    new Gauge({
      name: `konverge_cache_${name}`,
      help,
      labelNames: ["resource"],
      registers: [registry],
      collect() {
        this.reset();
        for (const cache of measureCaches(caches)) {
          this.set({ resource: cache.resource }, cache[name]);
        }
      },
    });
  cacheGauge("objects", "Number of cached objects.");
  cacheGauge("bytes", "Size of the cached objects as JSON, estimated from 100 of them.");
}

type Counts = Awaited<ReturnType<ObservedQueue["counts"]>>;

function createQueueGauges(registry: Registry, queues: Observed<ObservedQueue>): void {
  let reading: Promise<Map<string, Counts>> | undefined;
  /** Reads each queue once for all gauges of a scrape. */
  const readOnce = () => {
    reading ??= readQueues(queues).finally(() => {
      reading = undefined;
    });
    return reading;
  };
  const queueGauge = (name: string, help: string, value: (counts: Counts) => number) =>
    new Gauge({
      name: `konverge_workqueue_${name}`,
      help: `${help} Reported by the leader.`,
      labelNames: ["name", "controller"],
      registers: [registry],
      async collect() {
        const counted = await readOnce();
        this.reset();
        for (const [controller, counts] of counted) {
          this.set({ name: controller, controller }, value(counts));
        }
      },
    });
  queueGauge("depth", "Number of keys that wait for an attempt.", ({ waiting }) => waiting);
  queueGauge("delayed", "Number of keys that back off or are deferred.", ({ delayed }) => delayed);
  queueGauge(
    "head_age_seconds",
    "Age of the key at the queue head.",
    ({ headAgeMs }) => headAgeMs / 1_000,
  );
}

async function readQueues(queues: Observed<ObservedQueue>): Promise<Map<string, Counts>> {
  const counted = new Map<string, Counts>();
  const all = [...queues].flatMap(([controller, observed]) =>
    [...observed].map((queue) => [controller, queue] as const),
  );
  await Promise.all(
    all.map(async ([controller, queue]) => {
      if (!queue.isLeader()) return;
      // Without Redis the values are unknown: a missing series shows that, a constant one would not.
      const counts = await queue.counts().catch(() => undefined);
      if (counts !== undefined) counted.set(controller, sumOf(counted.get(controller), counts));
    }),
  );
  return counted;
}

function sumOf(before: Counts | undefined, { waiting, delayed, headAgeMs }: Counts): Counts {
  return {
    waiting: waiting + (before?.waiting ?? 0),
    delayed: delayed + (before?.delayed ?? 0),
    headAgeMs: Math.max(headAgeMs, before?.headAgeMs ?? 0),
  };
}
