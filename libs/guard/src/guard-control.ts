import { findRateIssue, KonvergeError } from "@konverge/core";
import { closeRedis, openOnceOnly, withRedis, type RedisTarget } from "@konverge/redis";
import { guardKeys } from "./guard-keys.ts";
import { createGuardStore, type GuardStore, type OperatorAction } from "./guard-store.ts";
import { readGuard, type GuardView } from "./guard-view.ts";
import { readLimits, type LimitView } from "./limits/read-limits.ts";

/** Operator actions on guards, for processes that are not workers. Each action is stored with its author and reason. */
export interface GuardControl extends AsyncDisposable {
  /** Returns undefined if no worker has ever guarded this cluster. @throws KonvergeError `redis_unavailable` */
  read(cluster: string): Promise<GuardView | undefined>;
  /** Stops all calls to the API server until `reset`. @throws KonvergeError `not_found`, `invalid_request` */
  isolate(cluster: string, action: OperatorAction): Promise<void>;
  /** Closes the breaker, with an empty bucket and a fifth of the rate, as after an outage. */
  reset(cluster: string, action: OperatorAction): Promise<void>;
  /** Sets the fleet's rate immediately, in calls per second; undefined restores the configured rate. */
  setRate(
    cluster: string,
    ratePerSecond: number | undefined,
    action: OperatorAction,
  ): Promise<void>;
  /** Reads the named limits of the installation. */
  limits(): Promise<LimitView[]>;
  close(): Promise<void>;
}

export function openGuardControl(options: {
  readonly redis: RedisTarget;
  readonly prefix: string;
}): GuardControl {
  const redis = openOnceOnly(options.redis);
  // Failures reach the caller; without a listener they would also be thrown.
  redis.on("error", () => undefined);
  const withStore = <T>(cluster: string, work: (store: GuardStore) => Promise<T>): Promise<T> =>
    withRedis(redis, () => work(createGuardStore(redis, guardKeys(options.prefix, cluster))));
  const checked = (action: OperatorAction): OperatorAction => {
    for (const field of ["by", "reason"] as const) {
      const { length } = action[field].trim();
      if (length > 0 && length <= 200) continue;
      const detail = "is required, with at most 200 characters";
      throw new KonvergeError("invalid_request", `${field}: ${detail}`, {
        issues: [{ pointer: `/${field}`, detail }],
      });
    }
    return action;
  };
  const close = () => closeRedis(redis);
  return {
    read: (cluster) => withStore(cluster, (store) => readGuard(store, cluster)),
    isolate: (cluster, action) =>
      withStore(cluster, (store) => store.act("isolate", checked(action))),
    reset: (cluster, action) => withStore(cluster, (store) => store.act("reset", checked(action))),
    setRate: (cluster, ratePerSecond, action) =>
      withStore(cluster, (store) => {
        const detail = ratePerSecond === undefined ? undefined : findRateIssue(ratePerSecond);
        if (detail !== undefined) {
          throw new KonvergeError("invalid_request", `ratePerSecond: ${detail}`, {
            issues: [{ pointer: "/ratePerSecond", detail }],
          });
        }
        return store.setRate(ratePerSecond, checked(action));
      }),
    limits: () => withRedis(redis, () => readLimits(redis, options.prefix)),
    close,
    [Symbol.asyncDispose]: close,
  };
}
