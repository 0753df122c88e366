import type { Settings } from "@konverge/contracts";
import { showRedisUrl } from "@konverge/core";
import { inspectRedis } from "@konverge/redis";
import { failedCheck, type Check } from "./check.ts";

const UNSUITABLE = 2;

/** Whether Redis can keep what the queue promises. */
export async function checkRedisServer({ redisUrl }: Settings): Promise<Check[]> {
  try {
    // Its answer is waited for less than a second, which a busy machine may need for itself.
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
        level,
        detail,
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
