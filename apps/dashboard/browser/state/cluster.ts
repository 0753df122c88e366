import { computed } from "@preact/signals";
import { href, path, query, type Params } from "./router.ts";
import { defaultCluster } from "./session.ts";

/** The cluster whose work is shown: in the address, else the one that the API was started for. */
export const cluster = computed(
  () => query.value.get("cluster") ?? clusterOfPage(path.value) ?? defaultCluster,
);

/** Pages of one object (`/objects/cluster/...`) or run (`/runs/workflow/cluster/...`) belong to a cluster. */
function clusterOfPage(page: string): string | undefined {
  const [, kind, first, second] = page.split("/");
  const name = kind === "objects" ? first : kind === "runs" ? second : undefined;
  return name === undefined ? undefined : decodeURIComponent(name);
}

/** The address of a view of the same cluster. */
export function viewHref(to: string, params: Params = {}): string {
  const named = cluster.value === defaultCluster ? undefined : cluster.value;
  return href(to, { ...params, cluster: named });
}

/** `v1/...` with its parameters and the cluster. */
export function apiPath(route: string, params: Params = {}): string {
  const search = new URLSearchParams({ cluster: cluster.value });
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") search.set(name, value);
  }
  return `v1/${route}?${search.toString()}`;
}
