import type {
  CancelResponse,
  KeyList,
  KeyListQuery,
  OperatorActionList,
  PauseList,
  PauseAction,
  ReleaseResponse,
  ReleaseAction,
  ResumeResponse,
} from "@konverge/contracts";
import { defined, isKonvergeError, KonvergeError, parseKey } from "@konverge/core";
import type { OperatorAction, PauseScope, WorkQueue } from "@konverge/queue";
import { keyItem, pauseView } from "./key-item.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";

/** What people do with the queues of an installation, in the words of the API. */
export interface QueueDesk {
  listKeys(query: KeyListQuery): Promise<KeyList>;
  listPauses(cluster: string): Promise<PauseList>;
  pause(order: PauseAction): Promise<PauseList>;
  resume(order: PauseAction): Promise<ResumeResponse>;
  cancel(requestId: string, order: OperatorAction): Promise<CancelResponse>;
  release(order: ReleaseAction, via: "http" | "cli"): Promise<ReleaseResponse>;
  listOperatorActions(cluster: string, controller: string): Promise<OperatorActionList>;
}

export function createQueueDesk(access: QueueAccess): QueueDesk {
  /** Of one controller, or of all that are known, by name as it is written in keys. */
  const controllersOf = async (cluster: string, controller: string | undefined) => {
    if (controller !== undefined) {
      await access.find(cluster, controller);
      return [controller];
    }
    const known = await access.controllers(cluster);
    return known.map(({ name }) => name).toSorted((one, other) => order(one, other));
  };
  const queueOf = async (cluster: string, controller: string) =>
    (await access.find(cluster, controller)).queue;

  const targets = async ({ cluster, controller, namespace, name }: PauseAction) => {
    const found: { readonly queue: WorkQueue; readonly scope: PauseScope }[] = [];
    for (const each of await controllersOf(cluster, controller)) {
      const { queue, announced } = await access.find(cluster, each);
      const scope: PauseScope =
        name !== undefined
          ? { kind: "key", key: keyFor(announced, { namespace, name }) }
          : namespace !== undefined
            ? { kind: "namespace", namespace }
            : { kind: "controller" };
      found.push({ queue, scope });
    }
    if (found.length > 0) return found;
    throw new KonvergeError(
      "not_found",
      `no worker has announced a controller on "${cluster}" yet`,
    );
  };
  const listPauses = async (cluster: string): Promise<PauseList> => {
    const lists = await Promise.all(
      (await controllersOf(cluster, undefined)).map(async (controller) => {
        const pauses = await (await queueOf(cluster, controller)).control.listPauses();
        return pauses.map((pause) => ({ controller, ...pauseView(pause) }));
      }),
    );
    return { items: lists.flat() };
  };

  return {
    async listKeys({ cluster, controller, phase, namespace, name, limit, cursor }) {
      const items: KeyList["items"] = [];
      for (const each of await controllersOf(cluster, controller)) {
        // Keys begin with their controller, so a cursor says where to go on.
        const own = cursor?.startsWith(`${encodeURIComponent(each)}/`) === true;
        if (cursor !== undefined && !own && encodeURIComponent(each) < cursor) continue;
        const { control } = await queueOf(cluster, each);
        const page = await control.listKeys({
          ...defined({ phase, namespace, name }),
          ...(own ? { after: cursor } : {}),
          limit: limit - items.length,
        });
        items.push(...page.items.map(keyItem));
        if (page.next !== undefined) return { items, next: page.next };
        const last = items.at(-1);
        if (items.length === limit && last !== undefined) return { items, next: last.key };
      }
      return { items };
    },
    listPauses,
    async pause(body) {
      for (const { queue, scope } of await targets(body)) await queue.control.pause(scope, body);
      return await listPauses(body.cluster);
    },
    async resume(body) {
      let resumed = 0;
      let missing: KonvergeError | undefined;
      let paused = false;
      for (const { queue, scope } of await targets(body)) {
        try {
          resumed += (await queue.control.resume(scope, body)).resumed;
          paused = true;
        } catch (error) {
          if (!isKonvergeError(error) || error.code !== "not_found") throw error;
          missing = error;
        }
      }
      if (!paused && missing !== undefined) throw missing;
      return { resumed };
    },
    async cancel(requestId, given) {
      const { cluster, controller } = keyOfRequest(requestId);
      const { control } = await queueOf(cluster, controller);
      return { id: requestId, result: await control.cancel(requestId, given) };
    },
    async release(body, via) {
      const { cluster, controller, namespace, name, contains, dryRun, by, reason } = body;
      const { queue, announced } = await access.find(cluster, controller);
      const selection =
        name === undefined
          ? {
              match: {
                ...defined({ namespace, name: contains }),
              },
            }
          : { key: keyFor(announced, { namespace, name }) };
      const { count } = await queue.control.release(selection, { by, reason }, { dryRun, via });
      return { count, dryRun };
    },
    async listOperatorActions(cluster, controller) {
      return { items: await (await queueOf(cluster, controller)).control.listOperatorActions() };
    },
  };
}

/** The key in the id of a request. @throws KonvergeError `not_found` */
export function keyOfRequest(id: string) {
  const end = id.lastIndexOf("@");
  try {
    return parseKey(end === -1 ? id : id.slice(0, end));
  } catch (error) {
    throw new KonvergeError("not_found", `no request has the id "${id}"`, { cause: error });
  }
}

/** As keys are compared. */
function order(one: string, other: string): number {
  const [left, right] = [encodeURIComponent(one), encodeURIComponent(other)];
  return left < right ? -1 : left > right ? 1 : 0;
}
