import { afterEach, expect, test, vi } from "vitest";
import requireRedis from "./require-redis.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each([undefined, ""])("REDIS_URL that is %j is told at once, with what to do", async (url) => {
  vi.stubEnv("REDIS_URL", url);
  await expect(requireRedis()).rejects.toThrow(/^REDIS_URL is not set.*npm test/);
});

test("a Redis that does not answer is told at once, without its password", async () => {
  vi.stubEnv("REDIS_URL", "redis://:s3cret@127.0.0.1:1");
  await expect(requireRedis()).rejects.toThrow(
    /^REDIS_URL=redis:\/\/127\.0\.0\.1:1 does not respond/,
  );
});
