import { checkRedisVersion, ensureError, KonvergeError } from "@konverge/core";
import { Cluster, type Redis } from "ioredis";
import { openProducer } from "./open-redis.ts";
import { primariesOf, type RedisTarget } from "./redis-target.ts";
import { runIdOf } from "./server-of.ts";
import { closeRedis, withRedis } from "./with-redis.ts";

/** Clocks that differ by more are reported, in ms. The latency of an answer is less. */
export const MAX_CLOCK_SKEW_MS: number = 2_000;

export interface RedisFacts {
  readonly version: string;
  /** Problems to log, one sentence each with a suggested fix. */
  readonly warnings: readonly string[];
}

/** The result of one check of Redis. */
export interface RedisFinding {
  readonly check:
    | "version"
    | "eviction"
    | "mode"
    | "persistence"
    | "identity"
    | "clock"
    | "memory"
    | "replicas"
    | "latency";
  /** `warn` limits a promise; `fail` breaks one; `unknown` was not reported by the server. */
  readonly level: "ok" | "warn" | "fail" | "unknown";
  /** One sentence, with a suggested fix unless `ok`. */
  readonly detail: string;
}

/**
 * Checks whether Redis supports the promises of the queue.
 * @throws KonvergeError `redis_unsupported` if Redis is too old, may evict keys, or is a cluster node with a single-server URL
 * @throws KonvergeError `redis_unavailable`
 */
export async function checkRedis(target: RedisTarget): Promise<RedisFacts> {
  const [first, ...others] = await askServers(target, (info, isCluster) =>
    judgeRedis(info, isCluster),
  );
  if (first === undefined) throw noPrimary();
  const warnings = [first, ...others].flatMap((facts) => facts.warnings);
  return { version: first.version, warnings: [...new Set(warnings)] };
}

/** Returns all findings, including those that are ok. @throws KonvergeError `redis_unavailable` */
export async function inspectRedis(target: RedisTarget): Promise<RedisFinding[]> {
  const servers = await askServers(target, async (info, isCluster, node) => [
    ...findRedisIssues(info, isCluster),
    judgeLatency(await measureLatency(node)),
  ]);
  if (servers.length === 0) throw noPrimary();
  const found = new Map(
    servers.flat().map((finding) => [`${finding.check} ${finding.detail}`, finding]),
  );
  return [...found.values()];
}

/** Returns the findings for each primary. */
async function askServers<Answer>(
  target: RedisTarget,
  judge: (info: string, isCluster: boolean, node: Redis) => Answer | Promise<Answer>,
): Promise<Answer[]> {
  const redis = openProducer(target);
  // withRedis reports failures to the caller; without a listener they would also be thrown.
  redis.on("error", () => undefined);
  try {
    const isCluster = redis instanceof Cluster;
    return await withRedis(redis, () =>
      Promise.all(
        primariesOf(redis).map(async (node) => await judge(await node.info(), isCluster, node)),
      ),
    );
  } finally {
    await closeRedis(redis);
  }
}

/** Calls of which the fastest counts, because a busy machine delays single ones. */
const PINGS = 5;
/** An attempt waits for several calls of Redis. Slower answers limit the throughput of a key. */
const MOST_LATENCY_MS = 20;

async function measureLatency(node: Redis): Promise<number> {
  let fastestMs = Infinity;
  for (let sent = 0; sent < PINGS; sent += 1) {
    const begunMs = performance.now();
    await node.ping();
    fastestMs = Math.min(fastestMs, performance.now() - begunMs);
  }
  return fastestMs;
}

/** Judges the time of the fastest of several calls. */
export function judgeLatency(fastestMs: number): RedisFinding {
  const detail = `answers within ${fastestMs.toFixed(1)} ms`;
  if (fastestMs <= MOST_LATENCY_MS) return { check: "latency", level: "ok", detail };
  const fix = "attempts wait for several calls; run Redis near the workers";
  return { check: "latency", level: "warn", detail: `${detail} at best: ${fix}` };
}

function noPrimary(): KonvergeError {
  return new KonvergeError("redis_unavailable", "the Redis Cluster has no primary; retry later");
}

/**
 * Judges the reply to INFO of a single server or a node of a Redis Cluster. `nowMs` is the local time of the reply.
 * @throws KonvergeError `redis_unsupported`
 */
export function judgeRedis(
  info: string,
  isCluster = false,
  nowMs: number = Date.now(),
): RedisFacts {
  const version = checkRedisVersion(info);
  const findings = findRedisIssues(info, isCluster, nowMs);
  const failed = findings.find(({ level }) => level === "fail");
  if (failed !== undefined) throw new KonvergeError("redis_unsupported", failed.detail);
  const warnings = findings
    .filter(({ check, level }) => level === "warn" || (level === "unknown" && check !== "clock"))
    .map(({ detail }) => detail);
  return { version, warnings };
}

function findRedisIssues(
  info: string,
  isCluster: boolean,
  nowMs: number = Date.now(),
): RedisFinding[] {
  const fields = new Map(
    info.split(/\r?\n/).map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  const policy = fields.get("maxmemory_policy");
  // Valkey 9 names the field of Redis differently.
  const mode = fields.get("redis_mode") ?? fields.get("server_mode");
  const isMistaken = mode === "cluster" && !isCluster;
  return [
    versionFinding(info),
    policy === undefined
      ? unknown(
          "eviction",
          "maxmemory-policy",
          "check that it is noeviction: eviction loses requests",
        )
      : policy === "noeviction"
        ? { check: "eviction", level: "ok", detail: "maxmemory-policy noeviction" }
        : {
            check: "eviction",
            level: "fail",
            detail: `maxmemory-policy is ${policy}: eviction loses requests; set maxmemory-policy noeviction`,
          },
    isMistaken
      ? {
          check: "mode",
          level: "fail",
          detail:
            "Redis is a node of a Redis Cluster, but the URL is for a single server; use redis+cluster://host:port,host:port",
        }
      : mode === undefined && !isCluster
        ? unknown("mode", "redis_mode", "check that the URL is not that of a Redis Cluster node")
        : { check: "mode", level: "ok", detail: isCluster ? "Redis Cluster" : "one server" },
    fields.get("aof_enabled") === undefined
      ? unknown("persistence", "aof_enabled", "check that restarts keep the data")
      : fields.get("aof_enabled") === "0"
        ? {
            check: "persistence",
            level: "warn",
            detail:
              "appendonly is off: a restart loses requests made since the last snapshot; set appendonly yes",
          }
        : { check: "persistence", level: "ok", detail: "append-only file on" },
    runIdOf(info) === ""
      ? unknown(
          "identity",
          "run_id and master_replid",
          "failovers that lose writes are detected only if all data is lost",
        )
      : { check: "identity", level: "ok", detail: "restarts and failovers are detected" },
    clockFinding(fields.get("server_time_usec"), nowMs),
    ...memoryFindings(fields),
    ...replicaFindings(fields),
  ];
}

/** Part of `maxmemory` above which an operator should act. */
const HIGH_MEMORY = 0.8;
const MIB = 2 ** 20;

function memoryFindings(fields: ReadonlyMap<string, string>): RedisFinding[] {
  const [used, max] = ["used_memory", "maxmemory"].map((name) => Number(fields.get(name)));
  if (used === undefined || max === undefined || Number.isNaN(used + max)) return [];
  const usedMiB = Math.ceil(used / MIB);
  if (max === 0) {
    return [{ check: "memory", level: "ok", detail: `${usedMiB} MiB used, maxmemory is not set` }];
  }
  const detail = `${usedMiB} of ${Math.round(max / MIB)} MiB used`;
  if (used / max <= HIGH_MEMORY) return [{ check: "memory", level: "ok", detail }];
  const fix =
    "a full Redis rejects requests; raise maxmemory, konverge capacity shows what uses it";
  return [{ check: "memory", level: "warn", detail: `${detail}: ${fix}` }];
}

/** More unacknowledged writes, in bytes, than a replica in use has. */
const MOST_LAG = 16 * MIB;

function replicaFindings(fields: ReadonlyMap<string, string>): RedisFinding[] {
  const replicas = Number(fields.get("connected_slaves"));
  if (Number.isNaN(replicas)) return [];
  if (replicas === 0) {
    const detail = "none: a failover is impossible, and the append-only file is the only copy";
    return [{ check: "replicas", level: "ok", detail }];
  }
  const offsets = [...fields]
    .filter(([name]) => /^slave\d+$/.test(name))
    .map(([, text]) => Number(/offset=(\d+)/.exec(text)?.[1]));
  const lag = Math.max(0, Number(fields.get("master_repl_offset")) - Math.min(...offsets));
  const detail = `${replicas} connected, the slowest is ${Math.ceil(lag / 1_024)} KiB behind`;
  if (!(lag > MOST_LAG)) return [{ check: "replicas", level: "ok", detail }];
  const fix = "a failover would lose these writes; check the network and the disk of the replica";
  return [{ check: "replicas", level: "warn", detail: `${detail}: ${fix}` }];
}

/** A hosted Redis may leave fields out of INFO. */
function unknown(check: RedisFinding["check"], field: string, fix: string): RedisFinding {
  return { check, level: "unknown", detail: `the server does not report ${field}; ${fix}` };
}

function versionFinding(info: string): RedisFinding {
  try {
    return { check: "version", level: "ok", detail: `Redis ${checkRedisVersion(info)}` };
  } catch (error) {
    return { check: "version", level: "fail", detail: ensureError(error).message };
  }
}

/** Redis 6.2 does not report its time in INFO. */
function clockFinding(serverUs: string | undefined, nowMs: number): RedisFinding {
  if (serverUs === undefined) {
    return { check: "clock", level: "unknown", detail: "not reported by this version of Redis" };
  }
  const aheadMs = nowMs - Number(serverUs) / 1_000;
  if (Math.abs(aheadMs) <= MAX_CLOCK_SKEW_MS) {
    const detail = `within ${Math.max(1, Math.round(Math.abs(aheadMs)))} ms of Redis`;
    return { check: "clock", level: "ok", detail };
  }
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  return {
    check: "clock",
    level: "warn",
    detail: `the local clock is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} Redis, which shifts the end of backoffs; synchronize both with NTP`,
  };
}
