import type { KeyList, KeyListQuery, PauseList, QueueList, Scope } from "@konverge/contracts";
import { defined } from "@konverge/core";
import type { AnnouncedWorker, ScanOptions } from "@konverge/queue";
import { queueOfWorkflow } from "@konverge/workflow";
import { demandSome, touches, type Caller } from "../access/caller.ts";
import type { RouteInput } from "../http/route.ts";
import { keyItem, pauseView } from "./key-item.ts";
import { placeOf } from "./place-of.ts";
import type { QueueAccess } from "./queue-access.ts";

/** Returns the names of all controllers, or of the given one, in the order of their keys. */
export async function controllerNames(
  access: QueueAccess,
  cluster: string,
  controller: string | undefined,
): Promise<string[]> {
  if (controller !== undefined) {
    await access.find(cluster, controller);
    return [controller];
  }
  const known = await access.controllers(cluster);
  return known.map(({ name }) => name).toSorted(compareSegments);
}

/** The work of a page of keys in simple requests, in addition to its scan. */
export function priceOfPage(limit: number): number {
  return 1 + limit / 50;
}

/** Lists the keys in the scope of the caller. */
export async function listKeys(
  access: QueueAccess,
  query: KeyListQuery,
  { caller, scan }: Pick<RouteInput<string, unknown, unknown>, "caller" | "scan">,
): Promise<KeyList> {
  const { cluster, controller, namespace } = query;
  demandSome(caller, { cluster, controller, namespace });
  return await scan((options) => readKeys(access, query, { scope: caller.scope, options }));
}

/** The scope limits what is read, not only what is returned: a cursor must not contain a name outside of it. */
async function readKeys(
  access: QueueAccess,
  { cluster, controller, phase, namespace, name, limit, cursor }: KeyListQuery,
  { scope, options }: { readonly scope: Scope; readonly options: ScanOptions },
): Promise<KeyList> {
  const items: KeyList["items"] = [];
  for (const each of await controllerNames(access, cluster, controller)) {
    if (!touches(scope, { cluster, controller: each })) continue;
    // A key begins with its controller, so the cursor names the controller to continue with.
    const own = cursor?.startsWith(`${encodeURIComponent(each)}/`) === true;
    if (cursor !== undefined && !own && encodeURIComponent(each) < cursor) continue;
    const { queue } = await access.find(cluster, each);
    const page = await queue.control.listKeys(
      {
        ...defined({ phase, namespace, namespaces: scope.namespaces, name }),
        ...(own ? { after: cursor } : {}),
        limit: limit - items.length,
      },
      options,
    );
    items.push(...page.items.map(keyItem));
    if (page.next !== undefined) return { items, next: page.next };
    const last = items.at(-1);
    if (items.length === limit && last !== undefined) return { items, next: last.key };
  }
  return { items };
}

/** Lists the pauses of a cluster that affect the scope of the caller. */
export async function listPauses(
  access: QueueAccess,
  caller: Caller,
  cluster: string,
): Promise<PauseList> {
  const names = await controllerNames(access, cluster, undefined);
  const lists = await Promise.all(names.map((name) => pausesOf(access, cluster, name)));
  return visiblePauses(caller, cluster, { items: lists.flat() });
}

async function pausesOf(
  access: QueueAccess,
  cluster: string,
  controller: string,
): Promise<PauseList["items"]> {
  const { queue } = await access.find(cluster, controller);
  const pauses = await queue.control.listPauses();
  return pauses.map((pause) => ({ controller, ...pauseView(pause) }));
}

/** Keeps the pauses that affect the scope of the caller, including pauses of more than the scope. */
export function visiblePauses({ scope }: Caller, cluster: string, { items }: PauseList): PauseList {
  return {
    items: items.filter(({ controller, scope: paused }) =>
      touches(
        scope,
        paused.kind === "key"
          ? placeOf(paused.key)
          : {
              cluster,
              controller,
              namespace: paused.kind === "namespace" ? paused.namespace : undefined,
            },
      ),
    ),
  };
}

/** Reads the queue lengths of the controllers and workflows in the scope of the caller. */
export async function readQueues(
  access: QueueAccess,
  caller: Caller,
  cluster: string,
): Promise<QueueList> {
  const [controllers, workflows, workers] = await Promise.all([
    access.controllers(cluster),
    access.workflows(cluster),
    access.workers(cluster),
  ]);
  const isVisible = (controller: string) => touches(caller.scope, { cluster, controller });
  const [items, queuesOfRuns] = await Promise.all([
    Promise.all(
      controllers
        .filter(({ name }) => isVisible(name))
        .map(({ name, kind }) => readQueue(access, caller, { cluster, name, kind, workers })),
    ),
    Promise.all(
      workflows
        .filter(({ name }) => isVisible(queueOfWorkflow(name)))
        .map(({ name }) => readWorkflowQueue(access, { cluster, workflow: name, workers })),
    ),
  ]);
  return { items, workflows: queuesOfRuns };
}

async function readQueue(
  access: QueueAccess,
  caller: Caller,
  input: {
    readonly cluster: string;
    readonly name: string;
    readonly kind: string;
    readonly workers: readonly AnnouncedWorker[];
  },
): Promise<QueueList["items"][number]> {
  const { cluster, name: controller, kind, workers } = input;
  const { queue } = await access.find(cluster, controller);
  const [counts, { keys, deadLettered }, pauses] = await Promise.all([
    queue.counts(),
    queue.backlog(),
    pausesOf(access, cluster, controller),
  ]);
  const visible = visiblePauses(caller, cluster, { items: pauses }).items;
  return {
    cluster,
    controller,
    kind,
    ...counts,
    // The objects of other namespaces are not counted for a caller who must not list them.
    ...(caller.scope.namespaces === undefined ? { keys, deadLettered } : {}),
    workers: workers.filter((worker) => worker.controllers.includes(controller)).length,
    pauses: visible.map(({ controller: _controller, ...pause }) => pause),
  };
}

async function readWorkflowQueue(
  access: QueueAccess,
  input: {
    readonly cluster: string;
    readonly workflow: string;
    readonly workers: readonly AnnouncedWorker[];
  },
): Promise<QueueList["workflows"][number]> {
  const { cluster, workflow, workers } = input;
  const queue = await access.workflowQueue(cluster, workflow);
  const { waiting, active, delayed } = await queue.counts();
  const able = workers.filter((worker) => worker.workflows?.[workflow] !== undefined);
  return { cluster, workflow, waiting, active, delayed, workers: able.length };
}

/** The order of keys, whose segments are percent-encoded. */
function compareSegments(one: string, other: string): number {
  const [left, right] = [encodeURIComponent(one), encodeURIComponent(other)];
  return left < right ? -1 : left > right ? 1 : 0;
}
