import { obtainRedis } from "@konverge/infra-redis";
import { Redis } from "ioredis";

/** A Redis without other clients, so that its counters cover only the benchmark. */
export interface OwnRedis extends AsyncDisposable {
  readonly url: string;
  readonly redis: Redis;
  /** Returns the counters since the start. */
  totals(): Promise<RedisTotals>;
  usedMemory(): Promise<number>;
}

export interface RedisTotals {
  /** Script calls. */
  readonly scripts: number;
  /** All commands, including those that scripts call. */
  readonly commands: number;
  /** CPU time of the server, in microseconds. */
  readonly cpuUs: number;
}

/** Starts a separate Redis even if `REDIS_URL` is set. */
export async function startOwnRedis(log: (line: string) => void): Promise<OwnRedis> {
  const { REDIS_URL: _ignored, ...env } = process.env;
  const server = await obtainRedis({ log, env });
  const redis = new Redis(server.url);
  const read = async (section: string, pattern: RegExp) =>
    (await redis.info(section)).matchAll(pattern);
  return {
    url: server.url,
    redis,
    async totals() {
      const calls = new Map<string, number>();
      for (const [, name = "", count] of await read(
        "commandstats",
        /^cmdstat_(\S+?):calls=(\d+)/gm,
      ))
        calls.set(name, Number(count));
      let cpuS = 0;
      for (const [, seconds] of await read("cpu", /^used_cpu_(?:sys|user):([\d.]+)/gm))
        cpuS += Number(seconds);
      return {
        scripts: (calls.get("evalsha") ?? 0) + (calls.get("eval") ?? 0),
        commands: [...calls.values()].reduce((sum, count) => sum + count, 0),
        cpuUs: cpuS * 1e6,
      };
    },
    async usedMemory() {
      const [found] = await read("memory", /^used_memory:(\d+)/gm);
      return Number(found?.[1]);
    },
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await server.stop();
    },
  };
}
