import type { RedisClient } from "@konverge/redis";
import { limitName, limitNames, limitsRoot } from "./limit-names.ts";

/** Most keys of a limit that are counted, and that are listed. */
const COUNTED_KEYS = 1_000;
const LISTED_KEYS = 20;

/** The options of a limit with their defaults. */
export interface StoredLimit {
  readonly rate?: number;
  readonly perMs?: number;
  readonly burst?: number;
  readonly concurrency?: number;
}

/** The state of a named limit. */
export interface LimitView {
  readonly name: string;
  readonly options: StoredLimit;
  /** The worker whose configuration applies. */
  readonly setBy: string;
  /** Permits, and requests that had to wait, since the limit exists. */
  readonly permits: number;
  readonly deferrals: number;
  /** Slots in use, and waiters, of the 1,000 keys used last. */
  readonly held: number;
  readonly waiting: number;
  /** The keys with most waiters, at most 20; empty for uses without a key. */
  readonly keys: readonly LimitKeyView[];
}

interface LimitKeyView {
  readonly key: string;
  readonly held: number;
  readonly waiting: number;
}

/** Reads all limits that a worker has configured within 30 days, by name. */
export async function readLimits(redis: RedisClient, prefix: string): Promise<LimitView[]> {
  const names = await redis.smembers(limitsRoot(prefix));
  const views = await Promise.all(names.toSorted().map((name) => readLimit(redis, prefix, name)));
  return views.filter((view) => view !== undefined);
}

async function readLimit(
  redis: RedisClient,
  prefix: string,
  name: string,
): Promise<LimitView | undefined> {
  const [fields, keys] = await Promise.all([
    redis.hgetall(limitName(prefix, name)),
    redis.zrevrange(limitNames(prefix, name, "").keys, 0, COUNTED_KEYS - 1),
  ]);
  if (fields["options"] === undefined) {
    await redis.srem(limitsRoot(prefix), name);
    return undefined;
  }
  const [seconds, micros] = await redis.time();
  const nowUs = Number(seconds) * 1e6 + Number(micros);
  const counted = await Promise.all(
    keys.map(async (key): Promise<LimitKeyView> => {
      const { slots, line } = limitNames(prefix, name, key);
      const [held, waiting] = await Promise.all([
        redis.zcount(slots, `(${nowUs}`, "+inf"),
        redis.zcard(line),
      ]);
      return { key, held, waiting };
    }),
  );
  const total = (field: "held" | "waiting") =>
    counted.reduce((sum, { [field]: count }) => sum + count, 0);
  return {
    name,
    options: JSON.parse(fields["options"]) as StoredLimit,
    setBy: fields["by"] ?? "",
    permits: Number(fields["granted"] ?? 0),
    deferrals: Number(fields["deferred"] ?? 0),
    held: total("held"),
    waiting: total("waiting"),
    keys: counted
      .filter(({ key }) => key !== "")
      .toSorted((a, b) => b.waiting - a.waiting || b.held - a.held)
      .slice(0, LISTED_KEYS),
  };
}
