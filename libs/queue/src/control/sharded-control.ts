import { formatKey, isKonvergeError } from "@konverge/core";
import { fieldOfScope } from "../contract/pause-scope.ts";
import type { PauseScope } from "../contract/pause.ts";
import type { GivenOrder, KeyPage, QueueControl } from "../contract/queue-control.ts";
import { parseRequestId } from "../keys/request-id.ts";

/** The log of a shard may have the same order a moment later than that of another. */
const SAME_ORDER_MS = 2_000;
const DEFAULT_LIMIT = 100;

/** The orders of people over several shards: what concerns one key goes to its home, all else to all of them. */
export function createShardedControl(
  shards: readonly QueueControl[],
  home: (id: string) => QueueControl,
): QueueControl {
  const concerned = (scope: PauseScope) =>
    scope.kind === "key" ? [home(formatKey(scope.key))] : shards;

  return {
    async pause(scope, order) {
      await Promise.all(concerned(scope).map((shard) => shard.pause(scope, order)));
    },
    async resume(scope, order) {
      // A resume that stopped half way has left some shards paused: it can be given again.
      const results = await Promise.allSettled(
        concerned(scope).map((shard) => shard.resume(scope, order)),
      );
      const failed = results.flatMap((result) =>
        result.status === "rejected" ? [result.reason as unknown] : [],
      );
      const isUnpaused = (error: unknown) => isKonvergeError(error) && error.code === "not_found";
      const fault = failed.find((error) => !isUnpaused(error));
      if (fault !== undefined || failed.length === results.length) throw fault ?? failed[0];
      let resumed = 0;
      for (const result of results) {
        if (result.status === "fulfilled") resumed += result.value.resumed;
      }
      return { resumed };
    },
    async listPauses() {
      const all = (await Promise.all(shards.map((shard) => shard.listPauses()))).flat();
      const distinct = new Map(all.map((pause) => [fieldOfScope(pause.scope), pause]));
      return [...distinct.values()].toSorted((one, other) => compare(one.since, other.since));
    },
    cancel: async (requestId, order) =>
      await home(parseRequestId(requestId).key).cancel(requestId, order),
    async listKeys(query = {}) {
      return merge(
        await Promise.all(shards.map((shard) => shard.listKeys(query))),
        query.limit ?? DEFAULT_LIMIT,
      );
    },
    async release(selection, order, options) {
      if ("key" in selection) {
        return await home(formatKey(selection.key)).release(selection, order, options);
      }
      let count = 0;
      for (const shard of shards) count += (await shard.release(selection, order, options)).count;
      return { count };
    },
    async listOrders() {
      const all = (await Promise.all(shards.map((shard) => shard.listOrders()))).flat();
      return all.toSorted((one, other) => compare(other.at, one.at)).reduce(collapse, []);
    },
  };
}

/** Pages in the order of keys. Where a shard has not looked further, the others' keys behind that point come later. */
function merge(pages: readonly KeyPage[], limit: number): KeyPage {
  const ends = pages.flatMap(({ next }) => next ?? []).toSorted(compare);
  const [end] = ends;
  const items = pages
    .flatMap((page) => page.items)
    .filter(({ key }) => end === undefined || compare(key, end) <= 0)
    .toSorted((one, other) => compare(one.key, other.key));
  const last = items[limit - 1];
  if (last !== undefined && (items.length > limit || end !== undefined)) {
    return { items: items.slice(0, limit), next: last.key };
  }
  return end === undefined ? { items } : { items, next: end };
}

function collapse(orders: GivenOrder[], order: GivenOrder): GivenOrder[] {
  const same = orders.findIndex(
    ({ kind, scope, by, reason, at }) =>
      kind === order.kind &&
      scope === order.scope &&
      by === order.by &&
      reason === order.reason &&
      Date.parse(at) - Date.parse(order.at) < SAME_ORDER_MS,
  );
  const known = orders[same];
  if (known === undefined) return [...orders, order];
  const count = (known.count ?? 0) + (order.count ?? 0);
  return orders.with(same, count === 0 ? known : { ...known, count });
}

/** By code unit, as Redis compares the bytes of keys, which are ASCII. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
