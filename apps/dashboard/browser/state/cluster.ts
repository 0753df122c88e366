import { computed } from "@preact/signals";
import { href, path, query, type Params } from "./router.ts";
import { defaultCluster } from "./session.ts";

/** The selected cluster: from the address, else the API's default. */
export const cluster = computed(
  () => query.value.get("cluster") ?? clusterOfPage(path.value) ?? defaultCluster,
);

const OF_OBJECTS = new Set(["objects", "approvals", "drift"]);

/** Returns the cluster in `/objects/cluster/...` and the like, or in `/runs/workflow/cluster/...`. */
function clusterOfPage(page: string): string | undefined {
  const [, kind, first, second] = page.split("/");
  const name = OF_OBJECTS.has(kind ?? "") ? first : kind === "runs" ? second : undefined;
  return name === undefined ? undefined : decodeURIComponent(name);
}

/** Returns the address of a view of the same cluster. */
export function viewHref(to: string, params: Params = {}): string {
  const named = cluster.value === defaultCluster ? undefined : cluster.value;
  return href(to, { ...params, cluster: named });
}

/** Returns `v1/...` with its parameters and the cluster. */
export function apiPath(route: string, params: Params = {}): string {
  const search = new URLSearchParams({ cluster: cluster.value });
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") search.set(name, value);
  }
  return `v1/${route}?${search.toString()}`;
}
