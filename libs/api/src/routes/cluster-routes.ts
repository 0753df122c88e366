import { clusterListSchema } from "@konverge/contracts";
import { defined } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import { isUnrestricted, touches } from "../access/caller.ts";
import { readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { viewClusters } from "../views/cluster-view.ts";

/** The clusters that workers serve, with the state of each guard. */
export function clusterRoutes(
  access: Pick<QueueAccess, "served">,
  guards: Pick<GuardControl, "read">,
): Route[] {
  return [
    readRoute({
      id: "listClusters",
      path: "/v1/clusters",
      summary: "List the clusters that workers serve, with their states",
      answer: clusterListSchema,
      async handle({ caller }) {
        const all = viewClusters(await access.served(), { withReasons: isUnrestricted(caller) });
        const visible = all.filter(({ name }) => touches(caller.scope, { cluster: name }));
        const items = visible.map(async (cluster) => {
          const guard = await guards.read(cluster.name);
          return { ...cluster, ...defined({ breaker: guard?.breaker.state }) };
        });
        return { items: await Promise.all(items) };
      },
    }),
  ];
}
