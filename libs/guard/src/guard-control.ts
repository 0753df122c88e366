import { findRateIssue, KonvergeError } from "@konverge/core";
import { closeRedis, openOnceOnly, withRedis, type RedisTarget } from "@konverge/redis";
import { guardKeys } from "./guard-keys.ts";
import { createGuardStore, type GuardStore, type Order } from "./guard-store.ts";
import { readGuard, type GuardView } from "./guard-view.ts";

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

export function openGuardControl(options: {
  readonly redis: RedisTarget;
  readonly prefix: string;
}): GuardControl {
  const redis = openOnceOnly(options.redis);
  // Failures reach the caller; without a listener they would be thrown once more.
  redis.on("error", () => undefined);
  const withStore = <T>(cluster: string, work: (store: GuardStore) => Promise<T>): Promise<T> =>
    withRedis(redis, () => work(createGuardStore(redis, guardKeys(options.prefix, cluster))));
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
  const close = () => closeRedis(redis);
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
