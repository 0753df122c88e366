/**
 * A plain `fetch` to any HTTP API, from any number of processes, with a shared rate limit and circuit breaker:
 *
 *   REDIS_URL=redis://127.0.0.1:6379 node guarded-fetch.ts https://api.example.com/things 100
 */
import { createGuard, guardFetch } from "@konverge/guard";

const [url = "http://127.0.0.1:8080/", count = "20"] = process.argv.slice(2);

await using guard = await createGuard({
  redis: { url: process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379" },
  // All processes with this name share the rate limit.
  cluster: new URL(url).host,
  workerId: `example-${process.pid}`,
  limits: { ratePerSecond: 50, burst: 60 },
});
const call = guardFetch(guard);

let left = Number(count);
const work = async () => {
  while (left > 0) {
    left -= 1;
    try {
      // The time includes the wait for a token.
      const response = await call(url, { signal: AbortSignal.timeout(30_000) });
      await response.arrayBuffer();
    } catch (error) {
      // Deferred: the breaker is open, or the server requested a pause. Otherwise the server failed.
      const waitMs = (error as { retryAfterMs?: number }).retryAfterMs ?? 100 + 900 * Math.random();
      left += 1;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
};
await Promise.all(Array.from({ length: 10 }, work));
console.log(JSON.stringify({ ...guard.counts, breaker: guard.breaker.mode }));
