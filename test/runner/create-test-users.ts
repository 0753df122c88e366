import { Redis } from "ioredis";
import { redisUsers } from "../../apps/cli/src/manifests/redis-acl.ts";

const PASSWORD = "of-the-tests";

export interface TestUsers {
  /** The environment with which the tests connect as these users. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns what Redis has denied to them, also if the caller ignored the error. */
  denied(): Promise<string[]>;
}

/** Creates the users that `konverge manifests -o acl` prints, for all prefixes of the tests. */
export async function createTestUsers(url: string): Promise<TestUsers> {
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
    await redis.acl("LOG", "RESET");
    return {
      env: {
        KONVERGE_TEST_WORKER_REDIS: urls["worker"] ?? url,
        KONVERGE_TEST_API_REDIS: urls["api"] ?? url,
      },
      async denied() {
        const admin = new Redis(url);
        try {
          return await deniedCommands(admin);
        } finally {
          admin.disconnect();
        }
      },
    };
  } finally {
    redis.disconnect();
  }
}

/** Returns what Redis has denied, as user, reason and command, key or channel. */
export async function deniedCommands(admin: Redis): Promise<string[]> {
  const entries = (await admin.acl("LOG")) as (readonly (string | number)[])[];
  return entries.map((entry) => {
    const fields = new Map<unknown, unknown>();
    for (let at = 0; at < entry.length; at += 2) fields.set(entry[at], entry[at + 1]);
    return ["username", "reason", "object"].map((name) => String(fields.get(name))).join(" ");
  });
}
