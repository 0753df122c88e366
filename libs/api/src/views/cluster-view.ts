import type { ClusterList } from "@konverge/contracts";
import { defined } from "@konverge/core";
import type { ReportedCluster, WorkerClusters } from "@konverge/queue";

type Item = ClusterList["items"][number];
type Seen = ReportedCluster & { readonly workerId: string };

/** The most severe first. */
const STATES = ["failing", "engaging", "disengaging", "engaged"] as const;

/** Combines the reports of all workers, by name of the cluster. */
export function viewClusters(
  reports: readonly WorkerClusters[],
  { withReasons }: { readonly withReasons: boolean },
): Omit<Item, "breaker">[] {
  const byName = new Map<string, Seen[]>();
  for (const { workerId, clusters } of reports) {
    for (const cluster of clusters) {
      byName.set(cluster.name, [...(byName.get(cluster.name) ?? []), { ...cluster, workerId }]);
    }
  }
  return [...byName]
    .map(([name, seen]) => viewCluster(name, seen, withReasons))
    .toSorted((left, right) => left.name.localeCompare(right.name));
}

function viewCluster(name: string, seen: readonly Seen[], withReasons: boolean) {
  const sorted = seen.toSorted(
    (left, right) =>
      STATES.indexOf(left.state) - STATES.indexOf(right.state) ||
      left.workerId.localeCompare(right.workerId),
  );
  const [worst] = sorted;
  if (worst === undefined) throw new Error(`cluster ${name} without workers`);
  const standing = ({ state, since, reason }: Seen) => ({
    state,
    since,
    ...(withReasons ? defined({ reason }) : {}),
  });
  const { serverVersion } = sorted.find((each) => each.serverVersion !== undefined) ?? worst;
  return {
    name,
    source: worst.source,
    ...standing(worst),
    ...defined({ serverVersion }),
    workers: sorted.map((each) => ({ workerId: each.workerId, ...standing(each) })),
  };
}
