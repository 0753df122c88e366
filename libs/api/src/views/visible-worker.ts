import { defined } from "@konverge/core";
import type { AnnouncedWorker } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import { covers, touches, type Caller } from "../access/caller.ts";

/**
 * Omits names of controllers and workflows outside the scope of the caller, and caches unless it covers the cluster.
 */
export function visibleWorker(
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
