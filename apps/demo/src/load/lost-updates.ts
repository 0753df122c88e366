import { isJsonObject, type JsonValue } from "@konverge/core";
import { COUNTER, type WriterReport } from "./outside-writer.ts";
import type { PoolObject, ScalerObject } from "./kinds.ts";

/** The last value each controller wrote to a pool, by its own records. */
export interface ControllerWrites {
  /** `spec.replicas`, by the autoscaler. */
  readonly replicas?: number;
  /** `status.machines`, by the node-pool controller. */
  readonly machines?: number;
}

type Written = string | number | undefined;

export interface LostUpdate {
  readonly pool: string;
  readonly field: string;
  readonly wrote: string;
  readonly found: string;
}

/**
 * Compares the recorded writes of every writer with the pools. An increment of the outside writer that is missing from
 * the counter was overwritten. So was a controller's field whose value differs from its last recorded write, unless the
 * server's managedFields name that controller: a killed worker may have written without recording it.
 */
export function findLostUpdates(
  pools: readonly PoolObject[],
  writer: WriterReport,
  controllers: ReadonlyMap<string, ControllerWrites>,
): LostUpdate[] {
  return pools.flatMap((pool) => {
    const name = pool.metadata.name;
    const wrote = controllers.get(name) ?? {};
    const lost = (field: string, expected: Written, found: Written): LostUpdate[] =>
      expected === undefined || String(expected) === String(found)
        ? []
        : [{ pool: name, field, wrote: String(expected), found: String(found ?? "nothing") }];
    const edits = writer.edits[name] ?? 0;
    const counted = Number(pool.metadata.annotations?.[COUNTER] ?? 0);
    return [
      // Each missing increment is a lost update.
      ...Array.from({ length: Math.max(0, edits - counted) }, () => ({
        pool: name,
        field: `metadata.annotations["${COUNTER}"]`,
        wrote: String(edits),
        found: String(counted),
      })),
      ...Object.entries(writer.labels[name] ?? {}).flatMap(([label, value]) =>
        lost(`metadata.labels["${label}"]`, value, pool.metadata.labels?.[label]),
      ),
      ...(isOwnedBy(pool, "konverge/autoscaler", ["f:spec", "f:replicas"])
        ? []
        : lost("spec.replicas", wrote.replicas, pool.spec.replicas)),
      ...(isOwnedBy(pool, "konverge/node-pool", ["f:status", "f:machines"])
        ? []
        : lost("status.machines", wrote.machines, pool.status?.machines)),
    ];
  });
}

/** True if the manager, and no other, set the field's current value. */
function isOwnedBy({ metadata }: PoolObject, manager: string, path: readonly string[]): boolean {
  const owners = (metadata.managedFields ?? []).filter(
    ({ fieldsV1 }) =>
      path.reduce<JsonValue | undefined>(
        (fields, name) => (isJsonObject(fields) ? fields[name] : undefined),
        fieldsV1,
      ) !== undefined,
  );
  return owners.length > 0 && owners.every((owner) => owner.manager === manager);
}

/** True if every controller has reached the state that the load requires. */
export function isConverged(
  facts: {
    readonly pools: readonly PoolObject[];
    readonly scalers: readonly ScalerObject[];
    /** Machines by pool. */
    readonly machines: ReadonlyMap<string, number>;
  },
  replicasOf: (pool: string) => number,
): boolean {
  const { pools, scalers, machines } = facts;
  return (
    pools.every((pool) => {
      const wanted = replicasOf(pool.metadata.name);
      return (
        pool.spec.replicas === wanted &&
        pool.status?.machines === wanted &&
        pool.status.observedGeneration === pool.metadata.generation &&
        (machines.get(pool.metadata.name) ?? 0) === wanted
      );
    }) && scalers.every(({ spec, status }) => status?.desiredReplicas === replicasOf(spec.poolRef))
  );
}
