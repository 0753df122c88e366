import type { Redis } from "ioredis";

/** A value of Redis as JSON, independent of the version of Redis. */
type DumpedValue =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "list" | "set"; readonly value: readonly string[] }
  | { readonly type: "hash"; readonly value: Readonly<Record<string, string>> }
  | { readonly type: "zset"; readonly value: readonly (readonly [member: string, score: string])[] }
  | {
      readonly type: "stream";
      readonly value: readonly (readonly [id: string, fields: string[]])[];
    };

export type DumpedKey = DumpedValue & {
  /** With the placeholder instead of the prefix. */
  readonly key: string;
  /** Remaining time to live when the dump was made. */
  readonly ttlMs?: number;
};

const PREFIX = "PREFIX";

/** Returns all keys of an installation, by name. */
export async function dumpRedis(redis: Redis, prefix: string): Promise<DumpedKey[]> {
  const names = (await redis.keys(`${prefix}:*`)).toSorted();
  return await Promise.all(
    names.map(async (name) => {
      const ttlMs = await redis.pttl(name);
      return {
        key: name.replace(prefix, PREFIX),
        ...(ttlMs > 0 ? { ttlMs } : {}),
        ...(await valueOf(redis, name)),
      };
    }),
  );
}

async function valueOf(redis: Redis, name: string): Promise<DumpedValue> {
  const type = await redis.type(name);
  switch (type) {
    case "string":
      return { type, value: (await redis.get(name)) ?? "" };
    case "list":
      return { type, value: await redis.lrange(name, "0", "-1") };
    case "set":
      return { type, value: (await redis.smembers(name)).toSorted() };
    case "hash":
      return { type, value: await redis.hgetall(name) };
    case "zset": {
      const flat = await redis.zrange(name, "0", "-1", "WITHSCORES");
      const pairs = Array.from({ length: flat.length / 2 }, (_, at) => at * 2);
      return { type, value: pairs.map((at) => [flat[at] ?? "", flat[at + 1] ?? ""] as const) };
    }
    case "stream":
      return { type, value: await redis.xrange(name, "-", "+") };
    default:
      throw new Error(`no dump for the type ${type} of ${name}`);
  }
}

/** Writes the keys of a dump under another prefix. */
export async function loadDump(
  redis: Redis,
  prefix: string,
  keys: readonly DumpedKey[],
): Promise<void> {
  for (const dumped of keys) {
    const name = dumped.key.replace(PREFIX, prefix);
    await write(redis, name, dumped);
    if (dumped.ttlMs !== undefined) await redis.pexpire(name, dumped.ttlMs);
  }
}

async function write(redis: Redis, name: string, dumped: DumpedValue): Promise<void> {
  switch (dumped.type) {
    case "string":
      await redis.set(name, dumped.value);
      return;
    case "list":
      await redis.rpush(name, ...dumped.value);
      return;
    case "set":
      await redis.sadd(name, ...dumped.value);
      return;
    case "hash":
      await redis.hset(name, dumped.value);
      return;
    case "zset":
      await redis.zadd(name, ...dumped.value.flatMap(([member, score]) => [score, member]));
      return;
    case "stream":
      for (const [id, fields] of dumped.value) await redis.xadd(name, id, ...fields);
      return;
  }
}
