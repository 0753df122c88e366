import { formatKey, isKonvergeError } from "@konverge/core";
import { fieldOfScope } from "../contract/pause-scope.ts";
import type { PauseScope } from "../contract/pause.ts";
import type { OperatorActionRecord, KeyPage, QueueControl } from "../contract/queue-control.ts";
import { parseRequestId } from "../keys/request-id.ts";

/** Longest time between the log entries of one action in different shards, in ms. */
const SAME_ACTION_MS = 2_000;
const DEFAULT_LIMIT = 100;

/** Operator actions over several shards: actions on a key go to its shard, all others to every shard. */
export function createShardedControl(
  shards: readonly QueueControl[],
  home: (id: string) => QueueControl,
): QueueControl {
  const concerned = (scope: PauseScope) =>
    scope.kind === "key" ? [home(formatKey(scope.key))] : shards;

  return {
    async pause(scope, action) {
      await Promise.all(concerned(scope).map((shard) => shard.pause(scope, action)));
    },
    async resume(scope, action) {
      // A resume that failed halfway leaves some shards paused; repeating it resumes them.
      const results = await Promise.allSettled(
        concerned(scope).map((shard) => shard.resume(scope, action)),
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
    cancel: async (requestId, action) =>
      await home(parseRequestId(requestId).key).cancel(requestId, action),
    async listKeys(query = {}, scan = {}) {
      return merge(
        await Promise.all(shards.map((shard) => shard.listKeys(query, scan))),
        query.limit ?? DEFAULT_LIMIT,
      );
    },
    async release(selection, action, options) {
      if ("key" in selection) {
        return await home(formatKey(selection.key)).release(selection, action, options);
      }
      let count = 0;
      for (const shard of shards) count += (await shard.release(selection, action, options)).count;
      return { count };
    },
    async listOperatorActions() {
      const all = (await Promise.all(shards.map((shard) => shard.listOperatorActions()))).flat();
      return all.toSorted((one, other) => compare(other.at, one.at)).reduce(collapse, []);
    },
  };
}

/** Merges pages in key order. Keys after the end of an incomplete shard page follow on a later page. */
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

function collapse(
  actions: OperatorActionRecord[],
  action: OperatorActionRecord,
): OperatorActionRecord[] {
  const same = actions.findIndex(
    ({ kind, scope, by, reason, at }) =>
      kind === action.kind &&
      scope === action.scope &&
      by === action.by &&
      reason === action.reason &&
      Date.parse(at) - Date.parse(action.at) < SAME_ACTION_MS,
  );
  const known = actions[same];
  if (known === undefined) return [...actions, action];
  const count = (known.count ?? 0) + (action.count ?? 0);
  return actions.with(same, count === 0 ? known : { ...known, count });
}

/** Compares by code unit, like Redis compares the bytes of keys, which are ASCII. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
