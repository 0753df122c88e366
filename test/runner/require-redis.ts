import { checkRedisUrl } from "@konverge/infra-redis";

/**
 * Runs before the tests of a project that needs Redis. Without Redis, each test would wait until its timeout and fail with
 * its own message.
 */
export default async function requireRedis(): Promise<void> {
  const url = process.env["REDIS_URL"];
  if (url === undefined || url === "") {
    throw new Error(
      "REDIS_URL is not set, but these tests need Redis. Run `npm test -- FILE`, which starts one, or set REDIS_URL, for example to redis://127.0.0.1:6379",
    );
  }
  await checkRedisUrl(url);
}
