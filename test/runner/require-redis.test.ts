import { afterEach, expect, test, vi } from "vitest";
import requireRedis from "./require-redis.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each([undefined, ""])("rejects REDIS_URL %j at once, with a suggested fix", async (url) => {
  vi.stubEnv("REDIS_URL", url);
  await expect(requireRedis()).rejects.toThrow(/^REDIS_URL is not set.*npm test/);
});

test("reports a Redis that does not respond at once, without its password", async () => {
  vi.stubEnv("REDIS_URL", "redis://:s3cret@127.0.0.1:1");
  await expect(requireRedis()).rejects.toThrow(
    /^REDIS_URL=redis:\/\/127\.0\.0\.1:1 does not respond/,
  );
});
