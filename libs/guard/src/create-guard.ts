import {
  checkRedisVersion,
  defined,
  ensureError,
  findInFlightIssue,
  guardLimits,
  KonvergeError,
  type AdmitOptions,
  type BreakerMode,
  type GateCall,
  type GuardLimits,
  type Permit,
} from "@konverge/core";
import {
  DEFAULT_PREFIX,
  openOnceOnly,
  openSubscriber,
  readServerInfo,
  runIdOf,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import type { BreakerUpdate } from "./breaker-view.ts";
import type { Guard, GuardEvent, GuardOptions } from "./guard.ts";
import { guardKeys, type GuardKeys } from "./guard-keys.ts";
import { createGuardStore, type GuardStore } from "./guard-store.ts";
import { breakerLimitsOf } from "./guard-view.ts";
import type { Health } from "./local-health.ts";
import type { TokenPool } from "./token-pool-options.ts";
import { createTokenPool } from "./token-pool.ts";

const DEFAULT_IN_FLIGHT = 64;
const FIRST_CONTACT_MS = 5_000;

/**
 * Opens a {@link Guard} that all processes share: their calls together stay below rate * T + burst in every window T, and
 * stop together when the server fails.
 * @throws KonvergeError `invalid_config` for invalid limits, `redis_unavailable`, `redis_unsupported` below 6.2
 */
export async function createGuard(options: GuardOptions): Promise<Guard> {
  const flightIssue = findInFlightIssue(options.maxInFlight ?? DEFAULT_IN_FLIGHT);
  if (flightIssue !== undefined) {
    throw new KonvergeError("invalid_config", `maxInFlight: ${flightIssue}`);
  }
  const guard = new FleetGuard(options, guardLimits(options.limits ?? {}));
  await guard.open();
  return guard;
}

class FleetGuard implements Guard {
  readonly #workerId: string;
  readonly #limits: GuardLimits;
  readonly #keepsLimits: boolean;
  readonly #keys: GuardKeys;
  readonly #redis: RedisClient;
  readonly #subscriber: { disconnect(): void };
  readonly #store: GuardStore;
  readonly #pool: TokenPool;
  readonly #listeners = new Set<(workable: boolean) => void>();
  readonly #firstContact = Promise.withResolvers<void>();
  readonly #emit: (event: GuardEvent) => void;
  /** Run ID of the connected Redis server; empty without a connection. */
  #runId = "";
  /** Revision of the limits that this process stored; 0 before. */
  #ownRevision = 0;
  #lastError = "";
  #wasWorkable = true;

  constructor(options: GuardOptions, limits: GuardLimits) {
    this.#workerId = options.workerId;
    this.#limits = limits;
    this.#keepsLimits = options.keepLimits ?? false;
    this.#emit = options.onEvent ?? (() => undefined);
    this.#keys = guardKeys(options.prefix ?? DEFAULT_PREFIX, options.cluster);
    this.#redis = openOnceOnly(options.redis);
    this.#store = createGuardStore(this.#redis, this.#keys);
    this.#pool = createTokenPool({
      workerId: options.workerId,
      limits,
      maxInFlight: options.maxInFlight ?? DEFAULT_IN_FLIGHT,
      ...defined({ probe: options.probe }),
      ...this.#redisCalls(),
      ...this.#poolEvents(),
      clock: () => performance.now(),
      random: Math.random,
      schedule: (ms, work) => {
        const timer = setTimeout(work, ms);
        return () => clearTimeout(timer);
      },
    });
    this.#followRedis();
    this.#subscriber = subscribe(this.#keys, options.redis, this.#pool, this.#onError);
  }

  /** Waits for the first contact with Redis. @throws KonvergeError `redis_unavailable`, `redis_unsupported` */
  async open(): Promise<void> {
    try {
      await within(FIRST_CONTACT_MS, this.#firstContact.promise, () => this.#lastError);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  admit(call: GateCall, options?: AdmitOptions): Promise<Permit> {
    return this.#pool.admit(call, options);
  }

  withoutCredentials(error: KonvergeError): KonvergeError {
    return this.#pool.withoutCredentials(error);
  }

  get breaker(): BreakerUpdate {
    return this.#pool.breaker;
  }

  get health(): Health["kind"] {
    return this.#pool.health;
  }

  get waitingByClass(): TokenPool["waitingByClass"] {
    return this.#pool.waitingByClass;
  }

  get waiting(): number {
    return this.#pool.waiting;
  }

  get inFlight(): number {
    return this.#pool.inFlight;
  }

  get ratePerSecond(): number {
    return this.#pool.ratePerSecond;
  }

  get counts(): TokenPool["counts"] {
    return this.#pool.counts;
  }

  onWorkable(listener: (workable: boolean) => void): () => void {
    this.#listeners.add(listener);
    if (!this.#wasWorkable) listener(false);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#pool.close();
    this.#subscriber.disconnect();
    if (this.#redis.status === "ready") await this.#redis.quit().catch(() => undefined);
    this.#redis.disconnect();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #redisCalls(): Pick<
    Parameters<typeof createTokenPool>[0],
    "admit" | "configure" | "reachable" | "runId"
  > {
    return {
      admit: async (request) => {
        const answer = await this.#store.admit(request);
        // A failure after this one is reported again.
        this.#lastError = "";
        return answer;
      },
      configure: (isLoss) => this.#storeLimits(isLoss),
      reachable: () => this.#store.reachable && this.#runId !== "",
      runId: () => this.#runId,
    };
  }

  #poolEvents(): Pick<
    Parameters<typeof createTokenPool>[0],
    "onBreaker" | "onTransition" | "onHealth" | "onRevision" | "onError"
  > {
    return {
      onBreaker: (update) => {
        this.#emit({ kind: "breaker", ...update });
        this.#reportWorkable();
      },
      onTransition: (transition) => this.#emit({ kind: "transition", transition }),
      onHealth: (health, cause) => {
        this.#emit({ kind: "health", health, ...defined({ cause }) });
        this.#reportWorkable();
      },
      onRevision: (revision) => {
        this.#readForeignLimits(revision).catch((error: unknown) =>
          this.#onError(ensureError(error)),
        );
      },
      onError: this.#onError,
    };
  }

  readonly #onError = (error: Error): void => {
    // An unavailable Redis fails every attempt with the same message.
    if (error.message === this.#lastError) return;
    this.#lastError = error.message;
    this.#emit({ kind: "error", error });
  };

  async #storeLimits(isLoss = false): Promise<void> {
    const limits = this.#limits;
    const how = { isLoss, keepsLimits: this.#keepsLimits };
    const configured = await this.#store.configure(limits, this.#workerId, how);
    const { changed, before, revision } = configured;
    if (changed && before !== undefined && before.by !== this.#workerId) {
      this.#emit({ kind: "limits", limits, by: this.#workerId, ours: true });
    }
    this.#ownRevision = revision;
  }

  async #readForeignLimits(revision: number): Promise<void> {
    if (revision === this.#ownRevision || this.#ownRevision === 0) return;
    this.#ownRevision = revision;
    const { fields } = await this.#store.read();
    const by = fields["setRate"] ? (fields["setRateBy"] ?? "") : (fields["limitsBy"] ?? "");
    const ratePerSecond = Number(fields["limitRate"]);
    const limits = {
      ...this.#limits,
      ratePerSecond,
      burst: Number(fields["burst"]),
      breaker: breakerLimitsOf(fields),
    };
    this.#emit({ kind: "limits", limits, by, ours: false });
  }

  #reportWorkable(): void {
    const workable = this.#pool.breaker.mode === "closed" && this.#pool.health === "well";
    if (workable === this.#wasWorkable) return;
    this.#wasWorkable = workable;
    for (const listener of this.#listeners) listener(workable);
  }

  #followRedis(): void {
    const redis = this.#redis;
    this.#firstContact.promise.catch(() => undefined);
    redis.on("ready", () => this.#greet());
    redis.on("close", () => {
      this.#runId = "";
    });
    // On a Redis Cluster the connection stays while another node may take over this guard's slot.
    for (const change of ["+node", "-node"]) {
      redis.on(change, () => {
        if (this.#runId === "") return;
        this.#runId = "";
        this.#greet();
      });
    }
    redis.on("error", this.#onError);
  }

  #greet(): void {
    this.#prepareConnection().then(this.#firstContact.resolve, (error: unknown) => {
      this.#firstContact.reject(error);
      this.#onError(ensureError(error));
      // Without the server's run ID no tokens are requested; a new connection reads it again.
      if (this.#redis.status !== "end") this.#redis.disconnect(true);
    });
  }

  async #prepareConnection(): Promise<void> {
    const info = await readServerInfo(this.#redis, this.#keys.state);
    checkRedisVersion(info);
    this.#runId = runIdOf(info) || "unknown";
    if (this.#ownRevision === 0) await this.#storeLimits();
    this.#lastError = "";
    this.#pool.refresh();
  }
}

/** Subscribes to breaker updates of other processes. An accelerator: without it, the next token request learns the same. */
function subscribe(
  keys: GuardKeys,
  target: RedisTarget,
  pool: TokenPool,
  onError: (error: Error) => void,
): { disconnect(): void } {
  const subscriber = openSubscriber(target);
  subscriber.on("error", onError);
  subscriber.on("ready", () => {
    subscriber.subscribe(keys.channel).catch((error: unknown) => onError(ensureError(error)));
  });
  subscriber.on("message", (_channel: string, text: string) => {
    // Workers that wait for their turn at the previous rate ask again.
    if (text === "limits") return pool.refresh();
    const [mode, generation, untilUs] = text.split(" ");
    pool.learn({
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
          `Redis is unavailable for the guard: ${why() || `no answer within ${ms} ms`}`,
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
