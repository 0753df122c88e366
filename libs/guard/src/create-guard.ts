import {
  checkRedisVersion,
  ensureError,
  findInFlightIssue,
  guardLimits,
  KonvergeError,
  type BreakerMode,
  type Gate,
  type GuardLimits,
} from "@konverge/core";
import {
  openOnceOnly,
  openSubscriber,
  readServerInfo,
  runIdOf,
  type RedisTarget,
} from "@konverge/redis";
import type { BreakerUpdate } from "./breaker-view.ts";
import type { GuardKeys } from "./guard-keys.ts";
import { guardKeys } from "./guard-keys.ts";
import { createGuardStore } from "./guard-store.ts";
import type { Transition } from "./transition.ts";
import type { Health } from "./local-health.ts";
import { createTokenPool, type TokenPool } from "./token-pool.ts";

export interface GuardOptions {
  readonly redis: RedisTarget;
  /** What is guarded: all processes that name it alike share one rate and one breaker. */
  readonly cluster: string;
  /** Tells installations on one Redis apart. Default `konverge`. */
  readonly prefix?: string;
  /** Unique per process. */
  readonly workerId: string;
  /** One set for the fleet: whoever starts last wins, and all say so. */
  readonly limits?: Partial<GuardLimits>;
  /** Most calls at once in this process. Default 64. Too few leave the rate unused; what is not needed is not used. */
  readonly maxInFlight?: number;
  /** Makes one read through this gate, as a call with `probe` set, to see whether the server is back. Without it the next call is the probe. */
  readonly probe?: (signal: AbortSignal) => Promise<unknown>;
  readonly onEvent?: (event: GuardEvent) => void;
}

/** What is worth a log line. */
export type GuardEvent =
  /** A report of this process moved the breaker. */
  | { readonly kind: "transition"; readonly transition: Transition }
  /** The breaker moved, whoever's report did it. */
  | {
      readonly kind: "breaker";
      readonly mode: BreakerMode;
      readonly generation: number;
      readonly waitMs: number;
    }
  /** This process alone is in trouble, or out of it. */
  | { readonly kind: "health"; readonly health: Health["kind"] }
  /** The limits are others than this process was configured with, or are so again. */
  | {
      readonly kind: "limits";
      readonly limits: GuardLimits;
      readonly by: string;
      readonly ours: boolean;
    }
  | { readonly kind: "error"; readonly error: Error };

export interface Guard extends Gate, AsyncDisposable {
  readonly breaker: BreakerUpdate;
  readonly health: Health["kind"];
  /** Calls that wait for a token, and calls that are under way, in this process. */
  readonly waiting: number;
  readonly inFlight: number;
  /** Of the whole fleet, as last told: what trouble has cut, success wins back. */
  readonly ratePerSecond: number;
  /** Since the start: round trips to Redis, permitted and refused calls. */
  readonly counts: TokenPool["counts"];
  /** Calls `listener` with what it stands at, and again when work should stop or may go on. */
  onWorkable(listener: (workable: boolean) => void): () => void;
  close(): Promise<void>;
}

const DEFAULT_PREFIX = "konverge";
const DEFAULT_IN_FLIGHT = 64;
const FIRST_CONTACT_MS = 5_000;

/**
 * A {@link Gate} that all processes share: their calls together stay below rate * T + burst in every window T, and stop
 * together when the server fails.
 * @throws KonvergeError `invalid_config` for limits that cannot work, `redis_unavailable`, `redis_unsupported` below 6.2
 */
export async function createGuard(options: GuardOptions): Promise<Guard> {
  const { cluster, workerId, maxInFlight = DEFAULT_IN_FLIGHT, probe } = options;
  const limits = guardLimits(options.limits ?? {});
  const flightIssue = findInFlightIssue(maxInFlight);
  if (flightIssue !== undefined) {
    throw new KonvergeError("invalid_config", `maxInFlight: ${flightIssue}`);
  }
  const keys = guardKeys(options.prefix ?? DEFAULT_PREFIX, cluster);
  const emit = options.onEvent ?? (() => undefined);
  const redis = openOnceOnly(options.redis);
  const store = createGuardStore(redis, keys);
  const listeners = new Set<(workable: boolean) => void>();
  let runId = "";
  let announced = false;
  let lastError = "";

  const onError = (error: Error) => {
    // A Redis that is away says so with every try.
    if (error.message === lastError) return;
    lastError = error.message;
    emit({ kind: "error", error });
  };
  const configure = async () => {
    const set = await store.configure(limits, workerId);
    announced = true;
    if (set.changed && set.before !== undefined && set.before.by !== workerId) {
      emit({ kind: "limits", limits, by: workerId, ours: true });
    }
    return set.revision;
  };
  let ownRevision = 0;
  const readForeignLimits = async (revision: number) => {
    if (revision === ownRevision || ownRevision === 0) return;
    ownRevision = revision;
    const { fields } = await store.read();
    const by = fields["setRate"] ? (fields["setRateBy"] ?? "") : (fields["limitsBy"] ?? "");
    emit({
      kind: "limits",
      limits: {
        ...limits,
        ratePerSecond: Number(fields["limitRate"]),
        burst: Number(fields["burst"]),
      },
      by,
      ours: false,
    });
  };
  const workable = () => share.breaker.mode === "closed" && share.health === "well";
  let wasWorkable = true;
  const reportWorkable = () => {
    if (workable() === wasWorkable) return;
    wasWorkable = workable();
    for (const listener of listeners) listener(wasWorkable);
  };

  const share = createTokenPool({
    workerId,
    limits,
    maxInFlight,
    probe,
    admit: async (ask) => {
      const answer = await store.admit(ask);
      // What fails again after this is news.
      lastError = "";
      return answer;
    },
    configure: async () => {
      ownRevision = await configure();
    },
    reachable: () => store.reachable && runId !== "",
    runId: () => runId,
    onBreaker: (news) => {
      emit({ kind: "breaker", ...news });
      reportWorkable();
    },
    onTransition: (transition) => emit({ kind: "transition", transition }),
    onHealth: (health) => {
      emit({ kind: "health", health });
      reportWorkable();
    },
    onRevision: (revision) =>
      void readForeignLimits(revision).catch((error: unknown) => onError(ensureError(error))),
    onError,
    clock: () => performance.now(),
    random: Math.random,
    schedule: (ms, work) => {
      const timer = setTimeout(work, ms);
      return () => clearTimeout(timer);
    },
  });

  const connected = async () => {
    const info = await readServerInfo(redis, keys.state);
    checkRedisVersion(info);
    runId = runIdOf(info) || "unknown";
    if (!announced) ownRevision = await configure();
    lastError = "";
    share.refresh();
  };
  const first = Promise.withResolvers<void>();
  first.promise.catch(() => undefined);
  const greet = () => {
    connected().then(first.resolve, (error: unknown) => {
      first.reject(error);
      onError(ensureError(error));
      // Nothing works without the first words; a new connection says them again.
      if (redis.status !== "end") redis.disconnect(true);
    });
  };
  redis.on("ready", greet);
  redis.on("close", () => {
    runId = "";
  });
  // On a Redis Cluster the connection stays while another node may take this guard's slot over.
  for (const change of ["+node", "-node"]) {
    redis.on(change, () => {
      if (runId === "") return;
      runId = "";
      greet();
    });
  }
  redis.on("error", onError);
  const subscriber = listenFor(keys, options.redis, share, onError);

  const close = async () => {
    share.close();
    subscriber.disconnect();
    if (redis.status === "ready") await redis.quit().catch(() => undefined);
    redis.disconnect();
  };
  try {
    await within(FIRST_CONTACT_MS, first.promise, () => lastError);
  } catch (error) {
    await close();
    throw error;
  }

  return {
    admit: (call, admitOptions) => share.admit(call, admitOptions),
    get breaker() {
      return share.breaker;
    },
    get health() {
      return share.health;
    },
    get waiting() {
      return share.waiting;
    },
    get inFlight() {
      return share.inFlight;
    },
    get ratePerSecond() {
      return share.ratePerSecond;
    },
    counts: share.counts,
    onWorkable(listener) {
      listeners.add(listener);
      if (!wasWorkable) listener(false);
      return () => listeners.delete(listener);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Messages of other processes only make it faster: whoever has no tokens must ask, and then learns the same. */
function listenFor(
  keys: GuardKeys,
  target: RedisTarget,
  share: TokenPool,
  onError: (error: Error) => void,
) {
  const subscriber = openSubscriber(target);
  subscriber.on("error", onError);
  subscriber.on("ready", () => {
    subscriber.subscribe(keys.channel).catch((error: unknown) => onError(ensureError(error)));
  });
  subscriber.on("message", (_channel: string, text: string) => {
    const [mode, generation, untilUs] = text.split(" ");
    share.learn({
      mode: mode as BreakerMode,
      generation: Number(generation),
      waitMs: Number(untilUs) / 1_000,
    });
  });
  return subscriber;
}

async function within(ms: number, pending: Promise<void>, why: () => string): Promise<void> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      deadline.reject(
        new KonvergeError(
          "redis_unavailable",
          `Redis cannot be used for the guard: ${why() || `no answer within ${ms} ms`}`,
          {
            retryAfterMs: 1_000,
          },
        ),
      ),
    ms,
  );
  try {
    await Promise.race([pending, deadline.promise]);
  } finally {
    clearTimeout(timer);
  }
}
