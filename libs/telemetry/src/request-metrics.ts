import type { TriggerKind } from "@konverge/core";
import { Counter, Gauge, type Registry } from "prom-client";

/** The metrics before an attempt: watches, leadership, requests, the queue. */
export interface RequestMetrics {
  /**
   * Reports a queue at each scrape while `isLeader`. All processes share the queue, so a sum over all of them would be wrong.
   */
  observeQueue(controller: string, queue: ObservedQueue): void;
  /** An acknowledged request of this process. */
  requested(request: {
    readonly controller: string;
    readonly trigger: TriggerKind;
    readonly coalesced: boolean;
  }): void;
  /** `resource`: `plural.group`. `measure` returns the size of its cache, at each scrape. */
  addWatch(resource: string, measure: () => CacheSize): void;
  watchInterrupted(resource: string): void;
  /** A predicate or `map` of a controller threw, or `map` returned an invalid name. */
  watchFunctionFailed(controller: string, name: "predicate" | "map"): void;
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
  const queues = new Map<string, ObservedQueue>();
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
    help: "Total number of errors in predicates and map functions, including invalid names.",
    labelNames: ["controller", "function"],
    registers,
  });
  createQueueGauges(registry, queues);
  const caches = new Map<string, (() => CacheSize)[]>();
  createCacheGauges(registry, caches);
  const leading: Gauge<"name"> = new Gauge({
    name: "konverge_leader_election_master_status",
    help: "1 if this process leads the controller, else 0.",
    labelNames: ["name"],
    registers,
    collect() {
      for (const [name, { isLeader }] of queues) leading.set({ name }, isLeader() ? 1 : 0);
    },
  });

  return {
    observeQueue(controller, queue) {
      queues.set(controller, queue);
      adds.inc({ name: controller, controller }, 0);
      for (const name of ["predicate", "map"])
        functionErrors.inc({ controller, function: name }, 0);
    },
    requested({ controller, trigger, coalesced }) {
      requests.inc({ controller, trigger, coalesced: String(coalesced) });
      if (!coalesced) adds.inc({ name: controller, controller });
    },
    addWatch(resource, measure) {
      interruptions.inc({ resource }, 0);
      caches.set(resource, [...(caches.get(resource) ?? []), measure]);
    },
    watchInterrupted: (resource) => interruptions.inc({ resource }),
    watchFunctionFailed: (controller, name) => functionErrors.inc({ controller, function: name }),
  };
}

/** Several watches of a kind count together. */
function createCacheGauges(
  registry: Registry,
  caches: ReadonlyMap<string, readonly (() => CacheSize)[]>,
): void {
  const cacheGauge = (name: keyof CacheSize, help: string) =>
    new Gauge({
      name: `konverge_cache_${name}`,
      help,
      labelNames: ["resource"],
      registers: [registry],
      collect() {
        for (const [resource, measures] of caches) {
          const total = measures.reduce((sum, measure) => sum + measure()[name], 0);
          this.set({ resource }, total);
        }
      },
    });
  cacheGauge("objects", "Number of cached objects.");
  cacheGauge("bytes", "Size of the cached objects as JSON, estimated from 100 of them.");
}

type Counts = Awaited<ReturnType<ObservedQueue["counts"]>>;

function createQueueGauges(registry: Registry, queues: ReadonlyMap<string, ObservedQueue>): void {
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

async function readQueues(
  queues: ReadonlyMap<string, ObservedQueue>,
): Promise<Map<string, Counts>> {
  const counted = new Map<string, Counts>();
  await Promise.all(
    [...queues].map(async ([controller, queue]) => {
      if (!queue.isLeader()) return;
      // Without Redis the values are unknown: a missing series shows that, a constant one would not.
      const counts = await queue.counts().catch(() => undefined);
      if (counts !== undefined) counted.set(controller, counts);
    }),
  );
  return counted;
}
