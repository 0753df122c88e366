import type { Cluster } from "@konverge/client";
import { age } from "./age.ts";
import { columns } from "./columns.ts";
import { toneCell } from "./tone.ts";

/** Formats one line per cluster. The numbers are the workers that engaged the cluster, and all that serve it. */
export function clusterRows(clusters: readonly Cluster[]): string {
  return columns([
    ["CLUSTER", "STATE", "AGE", "WORKERS", "BREAKER", "VERSION", "SOURCE", "REASON"],
    ...clusters.map(({ name, state, since, workers, breaker, serverVersion, source, reason }) => [
      name,
      toneCell(state),
      age(since),
      `${workers.filter((worker) => worker.state === "engaged").length}/${workers.length}`,
      toneCell(breaker ?? "-"),
      serverVersion ?? "-",
      source,
      reason ?? "",
    ]),
  ]);
}
