import type { Redis } from "ioredis";
import { watchCommands, type SeenCommand } from "../contract/watch-commands.ts";
import { until } from "./until.ts";

/** The commands of a piece of work, and the entries of collections that they read or write. */
export interface RedisCosts {
  /** Commands of clients, with a script as one. */
  readonly calls: number;
  readonly entries: number;
}

type Cost = (redis: Redis, args: readonly string[]) => number | Promise<number>;

const ONE: Cost = () => 1;
/** A command whose arguments name every entry. */
const NAMED: Cost = (_redis, args) => Math.max(1, args.length - 2);
const hash: Cost = async (redis, [, key = ""]) => await redis.hlen(key);
const list: Cost = async (redis, [, key = ""]) => await redis.llen(key);
/** A range by index; negative indexes count from the end. */
const indexRange =
  (size: (redis: Redis, key: string) => Promise<number>): Cost =>
  async (redis, [, key = "", from = "0", to = "-1"]) => {
    const length = await size(redis, key);
    const at = (text: string) => (Number(text) < 0 ? length + Number(text) : Number(text));
    return Math.max(0, Math.min(length - 1, at(to)) - at(from) + 1);
  };
/** A range by score or name, limited by LIMIT offset count. */
const limitedRange: Cost = async (redis, args) => {
  const limit = args.findIndex((arg) => arg.toUpperCase() === "LIMIT");
  const size = await redis.zcard(args[1] ?? "");
  return limit === -1 ? size : Math.min(size, Number(args[limit + 1]) + Number(args[limit + 2]));
};
const streamRange: Cost = (_redis, args) => {
  const count = args.findIndex((arg) => arg.toUpperCase() === "COUNT");
  return count === -1 ? Infinity : Number(args[count + 1]);
};

const listRange = indexRange((redis, key) => redis.llen(key));
const setRange = indexRange((redis, key) => redis.zcard(key));

/** Entries that each command touches. A command that is missing here fails the test that uses it. */
const COSTS: Readonly<Record<string, Cost>> = {
  ...Object.fromEntries(
    (
      "time get set exists expire pexpire persist pttl incr incrby decr publish info echo ping " +
      "hget hset hlen hexists hincrby zscore zcard zcount zincrby zpopmin bzpopmin llen scard sismember " +
      "lindex rpoplpush lmove rpop lpop ltrim xadd xtrim xlen type hello client select quit multi exec"
    )
      .split(" ")
      .map((name) => [name, ONE]),
  ),
  ...Object.fromEntries(
    "hmget hmset hdel del unlink zadd zrem zmscore lpush rpush sadd srem mget"
      .split(" ")
      .map((name) => [name, NAMED]),
  ),
  hset: NAMED,
  hgetall: hash,
  hkeys: hash,
  hvals: hash,
  lrem: list,
  lpos: list,
  smembers: async (redis, [, key = ""]) => await redis.scard(key),
  lrange: listRange,
  zrange: (redis, args) =>
    args.some((arg) => /^BY(SCORE|LEX)$/i.test(arg))
      ? limitedRange(redis, args)
      : setRange(redis, args),
  zrevrange: setRange,
  zrangebyscore: limitedRange,
  zrevrangebyscore: limitedRange,
  zrangebylex: limitedRange,
  zremrangebyscore: limitedRange,
  xrange: streamRange,
  xrevrange: streamRange,
  eval: () => 0,
  evalsha: () => 0,
  script: () => 0,
};

/** Returns the commands that Redis executed during `work`, if nothing else uses it. */
export async function commandsDuring(
  { redis, url }: { readonly redis: Redis; readonly url: string },
  work: () => Promise<unknown>,
): Promise<readonly SeenCommand[]> {
  using seen = await watchCommands(url);
  await work();
  const mark = crypto.randomUUID();
  await redis.echo(mark);
  const isMark = ({ args }: SeenCommand) => args[1] === mark;
  const end = await until("the end of the work", () => {
    const index = seen.commands.findIndex(isMark);
    return index === -1 ? undefined : { index };
  });
  return seen.commands.slice(0, end.index);
}

/**
 * Counts what `work` costs a Redis that nothing else uses, except for the scripts `ignored` by their SHA, such as background
 * rounds. The count does not depend on time, so a scan that grows with the data shows on any machine.
 */
export async function countCosts(
  place: { readonly redis: Redis; readonly url: string },
  work: () => Promise<unknown>,
  ignored: readonly string[] = [],
): Promise<RedisCosts> {
  const seen = await commandsDuring(place, work);
  let isIgnored = false;
  const costs = { calls: 0, entries: 0 };
  for (const { args, byScript } of seen) {
    // The commands of a script follow its call.
    if (!byScript) isIgnored = ignored.includes(args[1] ?? "");
    if (isIgnored) continue;
    const name = (args[0] ?? "").toLowerCase();
    // A script that Redis does not know yet is sent again, as text.
    if (!byScript && name !== "eval") costs.calls += 1;
    const cost = COSTS[name];
    if (cost === undefined) throw new Error(`the costs of ${name} are missing in redis-entries.ts`);
    costs.entries += await cost(place.redis, args);
  }
  return costs;
}
