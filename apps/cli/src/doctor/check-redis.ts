import type { Settings } from "@konverge/contracts";
import { showRedisUrl } from "@konverge/core";
import { inspectRedis } from "@konverge/redis";
import { failedCheck, type Check } from "./check.ts";

const UNSUITABLE = 2;

/** Checks that Redis meets the requirements of the queue. */
export async function checkRedisServer({ redisUrl }: Settings): Promise<Check[]> {
  try {
    // One retry, because a busy machine can exceed the timeout of less than a second.
    const findings = await inspectRedis({ url: redisUrl }).catch(() =>
      inspectRedis({ url: redisUrl }),
    );
    const where: Check = {
      check: "redis",
      level: "ok",
      detail: `answers at ${showRedisUrl(redisUrl)}`,
    };
    return [
      where,
      ...findings.map(({ check, level, detail }): Check => ({
        check: `redis ${check}`,
        // Not checked, so never ok.
        level: level === "unknown" ? "skip" : level,
        detail: level === "unknown" ? `unknown: ${detail}` : detail,
        ...(level === "fail" ? { exitCode: UNSUITABLE } : {}),
      })),
    ];
  } catch (error) {
    const failed = failedCheck("redis", error);
    return [
      { ...failed, detail: failed.detail.replace(/^Redis/, `Redis at ${showRedisUrl(redisUrl)}`) },
    ];
  }
}
