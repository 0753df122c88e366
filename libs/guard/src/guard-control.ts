import { ensureError, findRateIssue, KonvergeError } from "@konverge/core";
import { guardKeys } from "./guard-keys.ts";
import { createGuardStore, type GuardStore, type Order } from "./guard-store.ts";
import { readGuard, type GuardView } from "./guard-view.ts";
import { connectRedis, type RedisTarget } from "./redis-connection.ts";

/** What people do with guards, without being a worker. Every order is kept with who gave it and why. */
export interface GuardControl extends AsyncDisposable {
  /** Undefined when no worker has ever guarded this cluster. @throws KonvergeError `redis_unavailable` */
  read(cluster: string): Promise<GuardView | undefined>;
  /** Nothing is sent to the API server any more, until `reset`. @throws KonvergeError `not_found`, `invalid_request` */
  isolate(cluster: string, order: Order): Promise<void>;
  /** Closes the breaker: with an empty bucket and a fifth of the rate, as after an outage. */
  reset(cluster: string, order: Order): Promise<void>;
  /** Sets the fleet's rate at once, in calls per second; undefined goes back to the configured one. */
  setRate(cluster: string, ratePerSecond: number | undefined, order: Order): Promise<void>;
  close(): Promise<void>;
}

/** Whoever waits for an answer gets one within a second. */
const DEADLINE_MS = 900;

export function openGuardControl(options: {
  readonly redis: RedisTarget;
  readonly prefix: string;
}): GuardControl {
  const redis = connectRedis(options.redis);
  const silence = `no answer within ${DEADLINE_MS} ms`;
  let lastError = silence;
  redis.on("error", (error) => {
    lastError = error.message;
  });
  redis.on("ready", () => {
    lastError = silence;
  });
  const withStore = async <T>(
    cluster: string,
    work: (store: GuardStore) => Promise<T>,
  ): Promise<T> => {
    const deadline = Promise.withResolvers<never>();
    const timer = setTimeout(() => deadline.reject(new Error(lastError)), DEADLINE_MS);
    try {
      if (redis.status !== "ready") await Promise.race([becomesReady(), deadline.promise]);
      const done = work(createGuardStore(redis, guardKeys(options.prefix, cluster)));
      return await Promise.race([done, deadline.promise]);
    } catch (error) {
      if (error instanceof KonvergeError) throw error;
      throw new KonvergeError(
        "redis_unavailable",
        `Redis cannot be used: ${ensureError(error).message}`,
        { cause: error, retryAfterMs: 1_000 },
      );
    } finally {
      clearTimeout(timer);
    }
  };
  let ready: Promise<void> | undefined;
  // One listener, however many wait: callers that gave up must not leave theirs behind.
  const becomesReady = () => {
    ready ??= new Promise<void>((resolve) => {
      redis.once("ready", () => {
        ready = undefined;
        resolve();
      });
    });
    return ready;
  };
  const checked = (order: Order): Order => {
    for (const field of ["by", "reason"] as const) {
      const { length } = order[field].trim();
      if (length > 0 && length <= 200) continue;
      const cure = `say ${field === "by" ? "who" : "why"}, in at most 200 characters`;
      throw new KonvergeError("invalid_request", `${field}: ${cure}`, {
        issues: [{ pointer: `/${field}`, detail: cure }],
      });
    }
    return order;
  };
  const close = async () => {
    if (redis.status === "ready") await redis.quit().catch(() => undefined);
    redis.disconnect();
  };
  return {
    read: (cluster) => withStore(cluster, (store) => readGuard(store, cluster)),
    isolate: (cluster, order) =>
      withStore(cluster, (store) => store.order("isolate", checked(order))),
    reset: (cluster, order) => withStore(cluster, (store) => store.order("reset", checked(order))),
    setRate: (cluster, ratePerSecond, order) =>
      withStore(cluster, (store) => {
        const detail = ratePerSecond === undefined ? undefined : findRateIssue(ratePerSecond);
        if (detail !== undefined) {
          throw new KonvergeError("invalid_request", `ratePerSecond: ${detail}`, {
            issues: [{ pointer: "/ratePerSecond", detail }],
          });
        }
        return store.setRate(ratePerSecond, checked(order));
      }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
