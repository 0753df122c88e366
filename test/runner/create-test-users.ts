import { Redis } from "ioredis";
import { redisUsers } from "../../apps/cli/src/manifests/redis-acl.ts";

const PASSWORD = "of-the-tests";

/**
 * Creates the users that `konverge manifests -o acl` prints, for all prefixes of the tests. Returns the environment with
 * which the tests use them.
 */
export async function createTestUsers(url: string): Promise<Readonly<Record<string, string>>> {
  const redis = new Redis(url);
  try {
    const urls: Record<string, string> = {};
    for (const { role, name, rules } of redisUsers({
      name: "test",
      prefix: "*",
      clusters: [],
    })) {
      await redis.acl("SETUSER", name, ...rules, `>${PASSWORD}`);
      const own = new URL(url);
      own.username = name;
      own.password = PASSWORD;
      urls[role] = own.href;
    }
    return {
      KONVERGE_TEST_WORKER_REDIS: urls["worker"] ?? url,
      KONVERGE_TEST_API_REDIS: urls["api"] ?? url,
    };
  } finally {
    redis.disconnect();
  }
}
