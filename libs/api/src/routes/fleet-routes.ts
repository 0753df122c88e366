import {
  clusterQuerySchema,
  controllerListSchema,
  queueListSchema,
  workerListSchema,
} from "@konverge/contracts";
import { demandSome, touches } from "../access/caller.ts";
import { readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readQueues } from "../queues/queue-view.ts";
import { visibleWorker } from "../views/visible-worker.ts";

/** Controllers, workers and queue lengths. `home` is the default cluster. */
export function fleetRoutes(access: QueueAccess, home: string): Route[] {
  return [
    readRoute({
      id: "listControllers",
      path: "/v1/controllers",
      summary: "List the controllers that workers have announced",
      query: clusterQuerySchema,
      answer: controllerListSchema,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        const items = await access.controllers(cluster);
        return {
          items: items
            .filter(({ name }) => touches(caller.scope, { cluster, controller: name }))
            .map(({ sources: _listed, ...controller }) => controller),
        };
      },
    }),
    readRoute({
      id: "listWorkers",
      path: "/v1/workers",
      summary: "List live workers",
      query: clusterQuerySchema,
      answer: workerListSchema,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        const items = await access.workers(cluster);
        return { items: items.map((worker) => visibleWorker(worker, caller, cluster)) };
      },
    }),
    readRoute({
      id: "listQueues",
      path: "/v1/queues",
      summary: "List queue lengths and pauses by controller and workflow",
      query: clusterQuerySchema,
      answer: queueListSchema,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        return await readQueues(access, caller, cluster);
      },
    }),
  ];
}
