import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseJson, type ApiObject } from "@konverge/core";
import { createReflectorStore } from "../../libs/kube/src/reflector/reflector-store.ts";
import { largeGauge } from "./gauge.ts";
import { figureOf, type Figure } from "./measure.ts";

const OBJECTS = 10_000;
const ROUNDS = 3;
/** Of the objects as they were parsed. Field managers are a third of these objects. */
const MAX_RATIO = 0.75;

/** Measures the heap of cached objects of 2 kB, beside the same objects as parsed. */
export function measureCacheMemory(): Figure {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const texts = Array.from({ length: OBJECTS }, (_, n) => JSON.stringify(withManagers(n)));
  const heapPerObject = (keep: () => unknown): number => {
    collect();
    const before = process.memoryUsage().heapUsed;
    const kept = keep();
    collect();
    const bytes = process.memoryUsage().heapUsed - before;
    if (kept === undefined) throw new Error("nothing to measure");
    return bytes / OBJECTS;
  };
  const parse = (text: string) => parseJson(text) as unknown as ApiObject;
  const parsed = () => texts.map(parse);
  const cached = () => {
    const store = createReflectorStore<ApiObject>();
    for (const text of texts) {
      for (const event of store.eventsOf({ kind: "added", object: parse(text) }))
        store.commit(event);
    }
    return store;
  };
  const ours: number[] = [];
  const plain: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const [own, other] = [heapPerObject(cached), heapPerObject(parsed)];
    if (round === 0) continue;
    ours.push(own);
    plain.push(other);
  }
  return figureOf({
    suite: "cache",
    case: `${OBJECTS} objects of ${Math.round((texts[0]?.length ?? 0) / 100) / 10} kB for \`for\``,
    metric: "heap per object",
    unit: "B",
    ours,
    peer: { name: "parsed JSON", values: plain },
    goal: MAX_RATIO,
    goalIs: "most",
  });
}

/** A gauge as an API server returns it: with its identity, and the fields of two managers. */
function withManagers(n: number): object {
  const { metadata, spec } = largeGauge(n);
  const fields = (values: object) =>
    Object.fromEntries(
      [".", ...Object.keys(values).map((name) => `f:${name}`)].map((name) => [name, {}]),
    );
  const entry = (fieldsV1: object, rest: object = {}) => ({
    manager: "bench",
    operation: "Update",
    apiVersion: "bench.konverge.dev/v1",
    time: "2026-01-01T00:00:00Z",
    fieldsType: "FieldsV1",
    fieldsV1,
    ...rest,
  });
  const meta = { annotations: metadata.annotations, labels: metadata.labels };
  const managedFields = [
    entry({
      "f:metadata": {
        "f:annotations": fields(meta.annotations),
        "f:labels": fields(meta.labels),
      },
      "f:spec": fields(spec),
    }),
    entry({ "f:status": fields({ seen: 0 }) }, { subresource: "status" }),
  ];
  const identity = {
    uid: crypto.randomUUID(),
    resourceVersion: String(100_000 + n),
    generation: 1,
    creationTimestamp: "2026-01-01T00:00:00Z",
  };
  return {
    apiVersion: "bench.konverge.dev/v1",
    kind: "Gauge",
    metadata: { ...metadata, ...identity, managedFields },
    spec,
    status: { seen: 0 },
  };
}
