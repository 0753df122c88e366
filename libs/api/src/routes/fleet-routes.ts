import {
  clusterQuerySchema,
  controllerListSchema,
  queueListSchema,
  workerListSchema,
} from "@konverge/contracts";
import { defined } from "@konverge/core";
import type { AnnouncedWorker } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import { covers, demandSome, touches, type Caller } from "../access/caller.ts";
import { readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readQueues } from "../queues/queue-view.ts";

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
        return { items: items.map((worker) => withinScope(worker, caller, cluster)) };
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

/** Omits the names of controllers and workflows outside of the scope of the caller, and caches of any objects. */
function withinScope(
  { controllers, definitions, workflows, caches, load, ...rest }: AnnouncedWorker,
  { scope }: Caller,
  cluster: string,
): AnnouncedWorker {
  const isVisible = (controller: string) => touches(scope, { cluster, controller });
  const visible = <T>(named: Readonly<Record<string, T>>, queueOf: (name: string) => string) =>
    Object.fromEntries(Object.entries(named).filter(([name]) => isVisible(queueOf(name))));
  return {
    ...rest,
    ...(covers(scope, { cluster }) ? defined({ caches }) : {}),
    ...(load === undefined
      ? {}
      : {
          load: {
            ...load,
            slots: visible(load.slots, (name) => name),
            ...defined({ leads: load.leads?.filter(isVisible) }),
          },
        }),
    controllers: controllers.filter(isVisible),
    definitions: visible(definitions, (name) => name),
    ...(workflows === undefined ? {} : { workflows: visible(workflows, queueOfWorkflow) }),
  };
}
