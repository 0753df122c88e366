import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { loadScripts } from "../../lua/scripts.ts";

const redis = new Redis(process.env["REDIS_URL"] ?? "", { replyMapping: "legacy" });
afterAll(() => redis.quit());

const { scripts } = await loadScripts();

test.each(scripts)("Redis compiles the script $name", async ({ lua, sha }) => {
  expect(await redis.script("LOAD", lua)).toBe(sha);
});
