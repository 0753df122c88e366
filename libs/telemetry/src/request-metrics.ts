import type { TriggerKind } from "@konverge/core";
import { Counter, Gauge, type Registry } from "prom-client";
import { Observed, type ObservedName } from "./observed.ts";

/** The metrics before an attempt: watches, leadership, requests, the queue. */
export interface RequestMetrics {
  /**
   * Reports a queue at each scrape while `isLeader`. All processes share the queue, so a sum over all of them would be wrong.
   * Returns the function that ends it.
   */
  observeQueue(controller: string, queue: ObservedQueue): () => void;
  /** An acknowledged request of this process. */
  requested(request: {
    readonly cluster: string;
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
    readonly deadLettered: number;
    /** Keys whose requests wait for the end of a pause. */
    readonly paused: number;
    /** Age of the key that starts next. */
    readonly headAgeMs: number;
    /** The same without keys that only a resync requested. */
    readonly changeAgeMs: number;
    /** Objects that the controller would change if it did not only observe; undefined if it does not observe. */
    readonly drifted?: number;
  }>;
}

export function createRequestMetrics(registry: Registry): (cluster: string) => RequestMetrics {
  const registers = [registry];
  const queues = new Observed<ObservedQueue>();
  const adds = new Counter({
    name: "konverge_workqueue_adds_total",
    help: "Total number of keys added to the queue.",
    labelNames: ["cluster", "name", "controller"],
    registers,
  });
  const requests = new Counter({
    name: "konverge_requests_total",
    help: "Total number of acknowledged requests by trigger and coalescing.",
    labelNames: ["cluster", "controller", "trigger", "coalesced"],
    registers,
  });
  const interruptions = new Counter({
    name: "konverge_watch_interruptions_total",
    help: "Total number of watches that were interrupted and restarted.",
    labelNames: ["cluster", "resource"],
    registers,
  });
  const functionErrors = new Counter({
    name: "konverge_watch_function_errors_total",
    help: "Total number of errors in predicates, map and index functions, including invalid names.",
    labelNames: ["cluster", "controller", "function"],
    registers,
  });
  createQueueGauges(registry, queues);
  const caches = new Observed<() => CacheSize>();
  createCacheGauges(registry, caches);
  const leading: Gauge<"cluster" | "name"> = new Gauge({
    name: "konverge_leader_election_master_status",
    help: "1 if this process leads the controller, else 0.",
    labelNames: ["cluster", "name"],
    registers,
    collect() {
      leading.reset();
      for (const [of, observed] of queues) {
        const isLeading = [...observed].some(({ isLeader }) => isLeader());
        leading.set({ ...of }, isLeading ? 1 : 0);
      }
    },
  });

  return (cluster) => ({
    observeQueue(controller, queue) {
      adds.inc({ cluster, name: controller, controller }, 0);
      for (const name of ["predicate", "map", "index"])
        functionErrors.inc({ cluster, controller, function: name }, 0);
      return queues.add({ cluster, name: controller }, queue);
    },
    requested({ cluster: of, controller, trigger, coalesced }) {
      requests.inc({ cluster: of, controller, trigger, coalesced: String(coalesced) });
      if (!coalesced) adds.inc({ cluster: of, name: controller, controller });
    },
    addWatch(resource, measure) {
      interruptions.inc({ cluster, resource }, 0);
      return caches.add({ cluster, name: resource }, measure);
    },
    measureCaches: () =>
      measureCaches(caches)
        .filter((cache) => cache.cluster === cluster)
        .map(({ resource, objects, bytes }) => ({ resource, objects, bytes })),
    watchInterrupted: (resource) => interruptions.inc({ cluster, resource }),
    watchFunctionFailed: (controller, name) =>
      functionErrors.inc({ cluster, controller, function: name }),
  });
}

interface MeasuredCache extends CacheSize {
  readonly cluster: string;
  readonly resource: string;
}

/** Several watches of a kind count together. */
function measureCaches(caches: Observed<() => CacheSize>): MeasuredCache[] {
  return [...caches].map(([{ cluster, name: resource }, measures]) => {
    const sizes = [...measures].map((measure) => measure());
    return {
      cluster,
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
      labelNames: ["cluster", "resource"],
      registers: [registry],
      collect() {
        this.reset();
        for (const { cluster, resource, ...size } of measureCaches(caches)) {
          this.set({ cluster, resource }, size[name]);
        }
      },
    });
  cacheGauge("objects", "Number of cached objects.");
  cacheGauge("bytes", "Size of the cached objects as JSON, estimated from 100 of them.");
}

type Counts = Awaited<ReturnType<ObservedQueue["counts"]>>;

function createQueueGauges(registry: Registry, queues: Observed<ObservedQueue>): void {
  let reading: Promise<CountedQueue[]> | undefined;
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
      labelNames: ["cluster", "name", "controller"],
      registers: [registry],
      async collect() {
        const counted = await readOnce();
        this.reset();
        for (const { of, counts } of counted) {
          this.set({ cluster: of.cluster, name: of.name, controller: of.name }, value(counts));
        }
      },
    });
  queueGauge("depth", "Number of keys that wait for an attempt.", ({ waiting }) => waiting);
  queueGauge("delayed", "Number of keys that back off or are deferred.", ({ delayed }) => delayed);
  queueGauge("dead_lettered", "Number of dead-lettered keys.", ({ deadLettered }) => deadLettered);
  queueGauge("paused", "Number of keys that wait for the end of a pause.", ({ paused }) => paused);
  queueGauge(
    "head_age_seconds",
    "Age of the key at the queue head.",
    ({ headAgeMs }) => headAgeMs / 1_000,
  );
  queueGauge(
    "change_age_seconds",
    "Age of the first key that was not requested by a resync alone.",
    ({ changeAgeMs }) => changeAgeMs / 1_000,
  );
  const drifted: Gauge<"cluster" | "controller"> = new Gauge({
    name: "konverge_drifted_objects",
    help: "Number of objects that an observing controller would change. Reported by the leader.",
    labelNames: ["cluster", "controller"],
    registers: [registry],
    async collect() {
      const counted = await readOnce();
      drifted.reset();
      for (const { of, counts } of counted) {
        if (counts.drifted === undefined) continue;
        drifted.set({ cluster: of.cluster, controller: of.name }, counts.drifted);
      }
    },
  });
}

interface CountedQueue {
  readonly of: ObservedName;
  readonly counts: Counts;
}

async function readQueues(queues: Observed<ObservedQueue>): Promise<CountedQueue[]> {
  const read = [...queues].map(async ([of, observed]) => {
    // Two engines overlap while one replaces the other; only one of them leads.
    const leader = [...observed].find(({ isLeader }) => isLeader());
    // Without Redis the values are unknown: a missing series shows that, a constant one would not.
    const counts = await leader?.counts().catch(() => undefined);
    return counts === undefined ? [] : [{ of, counts }];
  });
  return (await Promise.all(read)).flat();
}
