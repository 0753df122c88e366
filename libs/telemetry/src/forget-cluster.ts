import type { Registry } from "prom-client";

/** Removes all series of a cluster, so that they do not keep their last values after the process has left it. */
export async function forgetCluster(registry: Registry, cluster: string): Promise<void> {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) continue;
    const { values } = await metric.get();
    for (const { labels } of values) {
      if (labels["cluster"] !== cluster) continue;
      const { le: _bucket, quantile: _quantile, ...own } = labels;
      metric.remove(own);
    }
  }
}
