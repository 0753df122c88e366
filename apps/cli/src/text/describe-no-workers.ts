/** Explains that a cluster has no live workers. `served` are the clusters of all workers that serve several. */
export function describeNoWorkers(cluster: string, served: readonly string[]): string {
  const others = served.filter((name) => name !== cluster);
  if (others.length === 0) return "no live workers; start one with konverge worker --config <file>";
  return `no live workers for cluster "${cluster}"; select one of the served clusters with --cluster: ${others.join(", ")}`;
}
