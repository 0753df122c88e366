import { KonvergeError, namespaceSegment, parseKey } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import type { ScanOptions } from "../contract/scan-options.ts";
import { decodeRow, type AttemptRow } from "./attempt-row.ts";
import type { HistoryNames } from "./history-names.ts";

/** Rows per round trip. */
const CHUNK = 250;
/** Rows that one search reads before it returns a cursor. */
const MOST_SCANNED = 20_000;

/** Filters of a search, combined with AND. */
export interface AttemptQuery {
  readonly controller?: string | undefined;
  /** Plural, or `plural.group`. */
  readonly resource?: string | undefined;
  /** `_` for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  /** A substring of the name. */
  readonly name?: string | undefined;
  readonly outcome?: string | undefined;
  readonly errorCode?: string | undefined;
  /** A competing field manager. */
  readonly manager?: string | undefined;
  readonly hint?: string | undefined;
  /** Earliest end of an attempt, epoch ms. An attempt is indexed within a second of its end. */
  readonly sinceMs?: number | undefined;
  /** The attempt ended before this time, epoch ms. */
  readonly untilMs?: number | undefined;
  readonly limit: number;
  /** Attempts that the search reads at most. Default 20,000. */
  readonly maxScanned?: number;
  /** The `next` of an earlier page. */
  readonly cursor?: string | undefined;
}

export interface AttemptPage {
  /** Newest first. */
  readonly items: readonly AttemptRow[];
  /**
   * The cursor of the next page. A short or empty page can have one: a search reads 20,000 attempts at most, and ends after its
   * budget of time.
   */
  readonly next?: string;
}

/** @throws KonvergeError `invalid_request` for an invalid cursor */
export async function searchAttempts(
  redis: RedisClient,
  names: HistoryNames,
  query: AttemptQuery,
  { turn = (read) => read(), budgetMs = Infinity, onScanned }: ScanOptions = {},
): Promise<AttemptPage> {
  const found: AttemptRow[] = [];
  const parts = partsOf(query);
  const endMs = performance.now() + budgetMs;
  const { sinceMs, untilMs, maxScanned = MOST_SCANNED } = query;
  const first = sinceMs === undefined ? "-" : String(Math.max(0, sinceMs));
  const newest = untilMs === undefined ? "+" : String(Math.max(0, untilMs - 1));
  let end = query.cursor === undefined ? newest : `(${checkCursor(query.cursor)}`;
  for (let scanned = 0; scanned < maxScanned; scanned += CHUNK) {
    const start = end;
    const chunk = await turn(() =>
      withRedis(redis, () => redis.xrevrange(names.index, start, first, "COUNT", CHUNK)),
    );
    onScanned?.(chunk.length);
    for (const [id, [, text = ""]] of chunk) {
      if (!parts.every((part) => text.includes(part))) continue;
      const row = decodeRow(text);
      if (!matches(row, query)) continue;
      found.push(row);
      if (found.length === query.limit) return { items: found, next: id };
    }
    const last = chunk.at(-1);
    if (last === undefined || chunk.length < CHUNK) return { items: found };
    end = `(${last[0]}`;
    if (performance.now() > endMs) break;
  }
  return { items: found, next: end.slice(1) };
}

/**
 * Returns texts that each matching row contains. Most rows are skipped by them, at a tenth of the cost of decoding. Values with
 * characters that an encoding changes are left to `matches`.
 */
function partsOf(query: AttemptQuery): string[] {
  const { controller, resource, namespace, name, outcome, errorCode, manager, hint } = query;
  return [controller, resource, namespace, name, outcome, errorCode, manager, hint].filter(
    (value) => value !== undefined && /^[\w.-]*[a-z0-9][\w.-]*$/i.test(value),
  ) as string[];
}

function checkCursor(cursor: string): string {
  // Redis rejects longer numbers.
  if (/^\d{1,15}-\d{1,15}$/.test(cursor)) return cursor;
  const detail = `cursor must be the "next" of an earlier response (got "${cursor}")`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/cursor", detail }],
  });
}

function matches(row: AttemptRow, query: AttemptQuery): boolean {
  if (query.outcome !== undefined && row.outcome !== query.outcome) return false;
  if (query.errorCode !== undefined && !hasCode(row, query.errorCode)) return false;
  if (query.manager !== undefined && !row.managers.includes(query.manager)) return false;
  if (query.hint !== undefined && !row.hints.includes(query.hint)) return false;
  const { controller, resource, namespace, name } = query;
  if ((controller ?? resource ?? namespace ?? name) === undefined) return true;
  const key = parseKey(row.key);
  if (controller !== undefined && key.controller !== controller) return false;
  if (namespace !== undefined && namespaceSegment(key.namespace) !== namespace) return false;
  if (name !== undefined && !key.name.includes(name)) return false;
  return resource === undefined || isOfResource(key, resource);
}

/** Of an API server's error, `kube_api.AlreadyExists` in full, either part will do. */
function hasCode({ errorCode }: AttemptRow, wanted: string): boolean {
  return errorCode === wanted || errorCode.split(".").includes(wanted);
}

function isOfResource(key: { resource: string; group: string }, wanted: string): boolean {
  return key.resource === wanted || `${key.resource}.${key.group}` === wanted;
}
