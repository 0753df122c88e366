import { checkRedisVersion, ensureError, KonvergeError } from "@konverge/core";
import { Cluster } from "ioredis";
import { openProducer } from "./open-redis.ts";
import { primariesOf, type RedisTarget } from "./redis-target.ts";
import { closeRedis, withRedis } from "./with-redis.ts";

/** More than an answer's way, in ms. */
const MAX_CLOCK_SKEW_MS = 2_000;

export interface RedisFacts {
  readonly version: string;
  /** What works but may surprise, for the log: one sentence each, with the cure. */
  readonly warnings: readonly string[];
}

/** One thing that Redis must be like. */
export interface RedisFinding {
  readonly check: "version" | "eviction" | "mode" | "persistence" | "clock";
  /** `warn` works but may surprise; `fail` cannot keep the promises. */
  readonly level: "ok" | "warn" | "fail";
  /** One sentence; with the cure where it is not ok. */
  readonly detail: string;
}

/**
 * Looks whether Redis can keep what the queue promises.
 * @throws KonvergeError `redis_unsupported` when it is too old, may evict keys, or is a Redis Cluster that the URL calls one server
 * @throws KonvergeError `redis_unavailable`
 */
export async function checkRedis(target: RedisTarget): Promise<RedisFacts> {
  const [first, ...others] = await askServers(target, judgeRedis);
  if (first === undefined) throw noPrimary();
  const warnings = [first, ...others].flatMap((facts) => facts.warnings);
  return { version: first.version, warnings: [...new Set(warnings)] };
}

/** The same, and also what is in order: for people who ask. @throws KonvergeError `redis_unavailable` */
export async function inspectRedis(target: RedisTarget): Promise<RedisFinding[]> {
  const servers = await askServers(target, findRedisIssues);
  if (servers.length === 0) throw noPrimary();
  const found = new Map(
    servers.flat().map((finding) => [`${finding.check} ${finding.detail}`, finding]),
  );
  return [...found.values()];
}

/** What each primary's INFO says. */
async function askServers<Answer>(
  target: RedisTarget,
  judge: (info: string, isCluster: boolean) => Answer,
): Promise<Answer[]> {
  const redis = openProducer(target);
  // Failures reach the caller through withRedis; without a listener they would be thrown once more.
  redis.on("error", () => undefined);
  try {
    const isCluster = redis instanceof Cluster;
    const infos = await withRedis(redis, () =>
      Promise.all(primariesOf(redis).map((node) => node.info())),
    );
    return infos.map((info) => judge(info, isCluster));
  } finally {
    await closeRedis(redis);
  }
}

function noPrimary(): KonvergeError {
  return new KonvergeError("redis_unavailable", "the Redis Cluster names no primary; wait for it");
}

/**
 * The judgement over the answer of INFO at `nowMs` of our own clock, by a server that is spoken to alone or as a node of a
 * Redis Cluster.
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
  const warnings = findings.filter(({ level }) => level === "warn").map(({ detail }) => detail);
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
  const policy = fields.get("maxmemory_policy") ?? "noeviction";
  const isMistaken = fields.get("redis_mode") === "cluster" && !isCluster;
  return [
    versionFinding(info),
    policy === "noeviction"
      ? { check: "eviction", level: "ok", detail: "maxmemory-policy noeviction" }
      : {
          check: "eviction",
          level: "fail",
          detail: `Redis may evict keys (maxmemory-policy ${policy}), which would lose requests; set maxmemory-policy noeviction`,
        },
    isMistaken
      ? {
          check: "mode",
          level: "fail",
          detail:
            "Redis is a node of a Redis Cluster, but its URL names one server; write redis+cluster://host:port,host:port",
        }
      : { check: "mode", level: "ok", detail: isCluster ? "Redis Cluster" : "one server" },
    fields.get("aof_enabled") === "0"
      ? {
          check: "persistence",
          level: "warn",
          detail:
            "Redis has its append-only file off: a restart forgets requests made since the last snapshot; set appendonly yes",
        }
      : { check: "persistence", level: "ok", detail: "append-only file on" },
    clockFinding(fields.get("server_time_usec"), nowMs),
  ];
}

function versionFinding(info: string): RedisFinding {
  try {
    return { check: "version", level: "ok", detail: `Redis ${checkRedisVersion(info)}` };
  } catch (error) {
    return { check: "version", level: "fail", detail: ensureError(error).message };
  }
}

/** Redis 6.2 does not tell its time here. */
function clockFinding(serverUs: string | undefined, nowMs: number): RedisFinding {
  if (serverUs === undefined) {
    return { check: "clock", level: "ok", detail: "not told by this version of Redis" };
  }
  const aheadMs = nowMs - Number(serverUs) / 1_000;
  if (Math.abs(aheadMs) <= MAX_CLOCK_SKEW_MS) {
    const detail = `within ${Math.max(1, Math.round(Math.abs(aheadMs)))} ms of that of Redis`;
    return { check: "clock", level: "ok", detail };
  }
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  return {
    check: "clock",
    level: "warn",
    detail: `the clock of this machine is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} that of Redis: backoffs end too early or too late by as much; synchronise both by NTP`,
  };
}
