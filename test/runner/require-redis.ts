import { checkRedisUrl } from "@konverge/infra-redis";

/**
 * Runs before the tests of a project that needs Redis: without one they would wait for it until their time is up, each
 * with a message of its own.
 */
export default async function requireRedis(): Promise<void> {
  const url = process.env["REDIS_URL"];
  if (url === undefined || url === "") {
    throw new Error(
      "REDIS_URL is not set, and these tests need a Redis: run them by `npm test -- FILE`, which starts one, or set REDIS_URL, for example to redis://127.0.0.1:6379",
    );
  }
  await checkRedisUrl(url);
}
