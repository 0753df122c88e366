import { isKonvergeError, sleepMs, type GuardLimits } from "@konverge/core";
import { createGuard } from "@konverge/guard";
import { circuitBreaker, ConsecutiveBreaker, ExponentialBackoff, handleAll } from "cockatiel";
import { Redis } from "ioredis";
import { RateLimiterQueue, RateLimiterRedis } from "rate-limiter-flexible";

/** The protection under measurement, in one process. Every arm receives the same calls. */
interface Arm {
  /** Sends one call when it is admitted. False: it was rejected; the caller retries after `waitMs`. */
  call(send: () => Promise<boolean>): Promise<{ readonly waitMs: number } | "sent">;
  /** Round trips to Redis so far. */
  roundTrips(): number;
  close(): Promise<void>;
}

interface ArmOptions {
  readonly redisUrl: string;
  /** Shared by all processes of one run, and by no other. */
  readonly name: string;
  readonly worker: string;
  readonly limits: GuardLimits;
}
export type MakeArm = (options: ArmOptions) => Promise<Arm>;

const AGAIN_MS = 250;

export const ourGuard: MakeArm = async ({ redisUrl, name, worker, limits }) => {
  const guard = await createGuard({
    redis: { url: redisUrl },
    cluster: "bench",
    prefix: name,
    workerId: worker,
    limits,
  });
  return {
    async call(send) {
      try {
        const permit = await guard.admit({ verb: "get", resource: "things", priority: "event" });
        const good = await send();
        permit.settle({ kind: "response", status: good ? 200 : 503 });
        return "sent";
      } catch (error) {
        if (!isKonvergeError(error) || error.code !== "deferred") throw error;
        return { waitMs: error.retryAfterMs ?? AGAIN_MS };
      }
    },
    roundTrips: () => guard.counts.asks,
    close: () => guard.close(),
  };
};

/** Fixed windows with `points` calls per second. Its queue waits for the next window. */
export const flexibleLimiter: MakeArm = async ({ redisUrl, name, limits }) => {
  const redis = new Redis(redisUrl);
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: name,
    points: limits.ratePerSecond,
    duration: 1,
  });
  let trips = 0;
  const consume = limiter.consume.bind(limiter);
  limiter.consume = (...args) => {
    trips += 1;
    return consume(...args);
  };
  const queue = new RateLimiterQueue(limiter, { maxQueueSize: 10_000 });
  return {
    async call(send) {
      await queue.removeTokens(1, "calls");
      await send();
      return "sent";
    },
    roundTrips: () => trips,
    close: async () => redis.disconnect(),
  };
};

const BUCKET = `
local now = redis.call('TIME')
now = now[1] + now[2] / 1e6
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local h = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (tonumber(h[1]) or burst) + (now - (tonumber(h[2]) or now)) * rate)
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = math.ceil((1 - tokens) * 1000 / rate) end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', string.format('%.6f', now))
return wait`;

/** The token bucket of tutorials: one script, and one round trip for each call and for each rejection. */
export const plainBucket: MakeArm = async ({ redisUrl, name, limits }) => {
  const redis = new Redis(redisUrl);
  redis.defineCommand("takeToken", { numberOfKeys: 1, lua: BUCKET });
  const take = redis as unknown as {
    takeToken(key: string, rate: number, burst: number): Promise<number>;
  };
  let trips = 0;
  return {
    async call(send) {
      trips += 1;
      const waitMs = await take.takeToken(`${name}:bucket`, limits.ratePerSecond, limits.burst);
      if (waitMs > 0) return { waitMs };
      await send();
      return "sent";
    },
    roundTrips: () => trips,
    close: async () => redis.disconnect(),
  };
};

/** A circuit breaker in each process. Consecutive failures open it, as they do Konverge's. */
export const ownBreaker: MakeArm = async () => {
  const breaker = circuitBreaker(handleAll, {
    breaker: new ConsecutiveBreaker(12),
    halfOpenAfter: new ExponentialBackoff({ initialDelay: 1_000, maxDelay: 5_000 }),
  });
  return {
    async call(send) {
      try {
        await breaker.execute(async () => {
          if (!(await send())) throw new ServerFailed();
        });
        return "sent";
      } catch (error) {
        if (error instanceof ServerFailed) return "sent";
        return { waitMs: AGAIN_MS };
      }
    },
    roundTrips: () => 0,
    close: () => Promise.resolve(),
  };
};

class ServerFailed extends Error {}

/** No protection besides the wait with full jitter after a failure, which `playLoad` adds to every arm. */
export const jitterAlone: MakeArm = async () => ({
  async call(send) {
    await send();
    return "sent";
  },
  roundTrips: () => 0,
  close: () => Promise.resolve(),
});

export interface Load {
  readonly make: MakeArm;
  readonly redisUrl: string;
  readonly limits: GuardLimits;
  readonly workers: number;
  readonly concurrency: number;
  readonly forMs: number;
  /** Not counted, because buckets are full and connections new. */
  readonly warmUpMs: number;
  readonly serviceMs: number;
  /** Start and end of the outage, since the start of the run. The server then returns 503. */
  readonly outage?: readonly [number, number];
}

export interface LoadResult {
  /** The time of each call in ms since the start, including the warm-up. */
  readonly sentMs: readonly number[];
  /** Counted after the warm-up. */
  readonly callsPerSecond: number;
  readonly roundTripsPerCall: number;
  readonly sentInOutage: number;
}

/** Runs the same load through one arm: closed loops that send once admitted, and wait with jitter after a failure. */
export async function playLoad(load: Load): Promise<LoadResult> {
  const { workers, concurrency, forMs, warmUpMs, serviceMs, outage = [0, 0] } = load;
  const name = `bench-${crypto.randomUUID()}`;
  const arms = await Promise.all(
    Array.from({ length: workers }, (_, n) => load.make({ ...load, name, worker: `worker-${n}` })),
  );
  const startedMs = performance.now();
  const sinceMs = () => performance.now() - startedMs;
  const sentMs: number[] = [];
  const send = async () => {
    const atMs = sinceMs();
    sentMs.push(atMs);
    await sleepMs(serviceMs);
    return atMs < outage[0] || atMs >= outage[1];
  };
  const loop = async (arm: Arm) => {
    let failures = 0;
    while (sinceMs() < forMs) {
      let good = true;
      const end = await arm.call(async () => (good = await send()));
      if (end !== "sent") {
        await sleepMs(Math.min(end.waitMs, Math.max(0, forMs - sinceMs())));
        continue;
      }
      failures = good ? 0 : failures + 1;
      if (failures > 0) await sleepMs(Math.random() * Math.min(5_000, 250 * 2 ** (failures - 1)));
    }
  };
  const trips = () => arms.reduce((sum, arm) => sum + arm.roundTrips(), 0);
  const running = Promise.all(
    arms.flatMap((arm) => Array.from({ length: concurrency }, () => loop(arm))),
  );
  await sleepMs(warmUpMs);
  const [tripsBefore, callsBefore, fromMs] = [trips(), sentMs.length, sinceMs()];
  await sleepMs(Math.max(0, forMs - sinceMs()));
  const [tripsAfter, callsAfter, toMs] = [trips(), sentMs.length, sinceMs()];
  await running;
  await Promise.all(arms.map((arm) => arm.close()));
  const calls = callsAfter - callsBefore;
  return {
    sentMs,
    callsPerSecond: (calls * 1_000) / (toMs - fromMs),
    roundTripsPerCall: (tripsAfter - tripsBefore) / Math.max(1, calls),
    sentInOutage: sentMs.filter((ms) => ms >= outage[0] && ms < outage[1]).length,
  };
}
