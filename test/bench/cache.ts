import type { ApiObject, ResourceType } from "@konverge/core";
import { createObjectCache } from "../../libs/engine/src/access/object-cache.ts";
import type { ObjectStore } from "../../libs/engine/src/access/object-store.ts";
import { createReflectorStore } from "../../libs/kube/src/reflector/reflector-store.ts";
import { measureCacheMemory } from "./cache-memory.ts";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";

const CHILDREN = 10;
const ROUNDS = 5;
const LISTS = 500;
/** A scan of the whole cache takes tens of milliseconds. */
const SCANS = 5;
const GOAL_MICROSECONDS = 50;
const Machine: ResourceType = {
  group: "bench.konverge.dev",
  version: "v1",
  kind: "Machine",
  resource: "machines",
  scope: "Namespaced",
};

/** Measures lists of 10 children from a worker's cache, against a copy and scan of all cached objects; then the memory. */
export async function benchCache({ log }: BenchOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const size of [1_000, 100_000]) {
    log(`cache: ${size} objects`);
    figures.push(...(await measure(size)));
  }
  log("cache: memory");
  figures.push(measureCacheMemory());
  return figures;
}

async function measure(size: number): Promise<Figure[]> {
  const store = createReflectorStore<ApiObject>();
  for (let index = 0; index < size; index++) {
    store.commit({ kind: "added", object: machine(index) });
  }
  const objects: ObjectStore = {
    scope: { type: Machine, namespace: undefined, labels: undefined, fields: undefined },
    synced: Promise.resolve(),
    lastVersion: String(size),
    list: (selection) => store.list(selection),
    get: (namespace = "", name) => store.get({ namespace, name }),
  };
  const cache = createObjectCache({ find: () => objects, started: () => [objects] });
  const namespace = "ns-0";
  const ownerUid = "owner-0";
  const ours: number[] = [];
  const scans: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const list = await microseconds(LISTS, async () => {
      await cache.list(Machine, { namespace, ownerUid, atLeast: undefined });
    });
    const scan = await microseconds(SCANS, () => scanAll(store.list(), namespace, ownerUid));
    if (round > 0) ours.push(list);
    if (round > 0) scans.push(scan);
  }
  const what = { suite: "cache", case: `10 children of ${size} objects`, unit: "µs" };
  return [
    figureOf({ ...what, metric: "list", ours, goal: GOAL_MICROSECONDS, goalIs: "most" }),
    figureOf({
      ...what,
      unit: "1/s",
      metric: "rate of lists",
      ours: ours.map(perSecond),
      peer: { name: "copy and scan of all objects", values: scans.map(perSecond) },
    }),
  ];
}

function scanAll(objects: readonly ApiObject[], namespace: string, ownerUid: string): unknown {
  const copies = new Map(objects.map((object) => [object.metadata.uid ?? "", object] as const));
  return [...copies.values()]
    .filter(({ metadata }) => metadata.namespace === namespace)
    .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === ownerUid));
}

async function microseconds(count: number, run: () => unknown): Promise<number> {
  const startedMs = performance.now();
  for (let index = 0; index < count; index++) await run();
  return ((performance.now() - startedMs) * 1_000) / count;
}

const perSecond = (duration: number): number => 1_000_000 / duration;

function machine(index: number): ApiObject {
  const owner = `owner-${Math.floor(index / CHILDREN)}`;
  return {
    apiVersion: "bench.konverge.dev/v1",
    kind: "Machine",
    metadata: {
      // Ten owners in each namespace.
      namespace: `ns-${Math.floor(index / (10 * CHILDREN))}`,
      name: `machine-${index}`,
      uid: `uid-${index}`,
      resourceVersion: String(index + 1),
      ownerReferences: [
        {
          apiVersion: "bench.konverge.dev/v1",
          kind: "Pool",
          name: owner,
          uid: owner,
          controller: true,
        },
      ],
    },
  };
}
