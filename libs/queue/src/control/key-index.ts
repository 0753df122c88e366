import { KonvergeError } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import type { ScanOptions } from "../contract/scan-options.ts";
import { HASH_FIELDS, keyStateOf } from "./key-reader.ts";
import { namespaceOf, pauseFieldsOf } from "../contract/pause-scope.ts";
import type { KeyFilter, KeyPage, KeyQuery, KeySummary } from "../contract/queue-control.ts";
import type { QueueNames } from "../keys/queue-names.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/** Keys that one call reads, in total and per round trip. */
const MOST_LOOKED_AT = 10_000;
const PAGE = 500;

/** Lists and searches keys by name, which BullMQ does not support. */
export interface KeyIndex {
  list(query: KeyQuery, options?: ScanOptions): Promise<KeyPage>;
  /** Returns matching dead-lettered keys after `after`, with `next` if more may follow. */
  deadPage(
    filter: Omit<KeyFilter, "phase">,
    after: string,
  ): Promise<{ readonly ids: readonly string[]; readonly next: string | undefined }>;
}

export function createKeyIndex(redis: RedisClient, names: QueueNames): KeyIndex {
  const page = (set: string, after: string) =>
    withRedis(redis, () =>
      redis.zrangebylex(set, after === "" ? "-" : `(${after}`, "+", "LIMIT", 0, PAGE),
    );

  const summaries = async (ids: readonly string[]): Promise<KeySummary[]> => {
    if (ids.length === 0) return [];
    const [hashes, timers, pauses] = await withRedis(redis, () =>
      Promise.all([
        Promise.all(ids.map((id) => redis.hmget(names.keyHash(id), ...HASH_FIELDS))),
        redis.zmscore(names.timers, ...ids),
        redis.hgetall(names.pauses),
      ]),
    );
    return ids.flatMap((id, index) => {
      const values = hashes[index] ?? [];
      // The hash has expired: its object was deleted long ago.
      if (values.every((value) => value === null)) return [];
      const hash = Object.fromEntries(HASH_FIELDS.map((field, at) => [field, values[at] ?? ""]));
      const pause = pauseFieldsOf(id).find((field) => pauses[field] !== undefined);
      const timer = timers[index] ?? null;
      const { triggers: _, ...summary } = keyStateOf(id, hash, {
        timerMs: timer === null ? undefined : Number(timer),
        pause: pause === undefined ? undefined : [pause, pauses[pause] ?? ""],
      });
      return [summary];
    });
  };

  return {
    async list(query, { turn, budgetMs = Infinity, onScanned } = {}) {
      const { phase, after = "", limit = DEFAULT_LIMIT } = query;
      checkLimit(limit);
      const namespaces = wantedNamespaces(query);
      const matches = matcher(namespaces, query.name);
      const set = phase === "deadLettered" ? names.dead : names.index;
      const items: KeySummary[] = [];
      const endMs = performance.now() + budgetMs;
      let cursor = after;
      for (
        let looked = 0;
        looked < MOST_LOOKED_AT && (looked === 0 || performance.now() < endMs);
      ) {
        const from = cursor;
        const read = async () => {
          const ids = await page(set, from);
          const matching = ids.filter(matches);
          // Without a phase to compare, no more keys are read than returned.
          const isEach = phase === undefined || phase === "deadLettered";
          const chosen = isEach ? matching.slice(0, limit - items.length) : matching;
          const rest = matching[chosen.length];
          return { ids, found: await summaries(chosen), left: rest && chosen.at(-1) };
        };
        const { ids, found, left } = await (turn === undefined ? read() : turn(read));
        looked += ids.length;
        onScanned?.(ids.length);
        for (const summary of found) {
          if (phase !== undefined && summary.phase !== phase) continue;
          items.push(summary);
          if (items.length === limit) return { items, next: summary.key };
        }
        const last = left ?? ids.at(-1);
        if (last === undefined || (left === undefined && ids.length < PAGE)) return { items };
        cursor = left ?? seek(last, namespaces);
      }
      return { items, next: cursor };
    },
    async deadPage(filter, after) {
      const ids = await page(names.dead, after);
      const last = ids.at(-1);
      const namespaces = wantedNamespaces(filter);
      const next = last === undefined || ids.length < PAGE ? undefined : seek(last, namespaces);
      return { ids: ids.filter(matcher(namespaces, filter.name)), next };
    },
  };
}

/** Returns the percent-encoded namespaces in the order of keys, in which a "/" follows. Undefined for all. */
function wantedNamespaces({ namespace, namespaces }: KeyQuery): readonly string[] | undefined {
  const wanted = namespace === undefined ? namespaces : [namespace];
  return wanted
    ?.filter((each) => namespaces?.includes(each) ?? true)
    .map((each) => `${encodeURIComponent(each)}/`)
    .toSorted()
    .map((each) => each.slice(0, -1));
}

/** Returns a filter for keys. Keys are percent-encoded; the name is not. */
function matcher(
  namespaces: readonly string[] | undefined,
  name: string | undefined,
): (id: string) => boolean {
  const wanted = namespaces === undefined ? undefined : new Set(namespaces);
  const part = name === undefined ? undefined : encodeURIComponent(name);
  return (id) => {
    if (wanted?.has(namespaceOf(id)) === false) return false;
    return part === undefined || id.slice(id.lastIndexOf("/") + 1).includes(part);
  };
}

/**
 * Returns the next start after `last`. Keys are ordered by type and namespace, so other namespaces are skipped, and the start
 * contains no name of theirs.
 */
function seek(last: string, namespaces: readonly string[] | undefined): string {
  if (namespaces === undefined) return last;
  const type = last.split("/", 3).join("/");
  for (const namespace of namespaces) {
    const first = `${type}/${namespace}/`;
    if (last.startsWith(first)) return last;
    if (last < first) return first;
  }
  // "0" is the character after "/".
  return `${type}0`;
}

function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit > 0 && limit <= MAX_LIMIT) return;
  const detail = `must be an integer from 1 to ${MAX_LIMIT}`;
  throw new KonvergeError("invalid_request", `limit: ${detail}`, {
    issues: [{ pointer: "/limit", detail }],
  });
}
