import {
  defined,
  ensureError,
  findLimit,
  LIMIT,
  limitRules,
  sleepMs,
  toMs,
  type HeldPermit,
  type LimitOptions,
  type Limits,
  type LimitUse,
  type NamedLimits,
  type PermitAsk,
  type PermitRequest,
  type PermitResult,
} from "@konverge/core";
import {
  closeRedis,
  openConsumer,
  runScript,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { configureLimitScript } from "../scripts/configure-limit.ts";
import { settlePermitsScript } from "../scripts/settle-permits.ts";
import { takePermitScript } from "../scripts/take-permit.ts";
import { Timers } from "../timers.ts";
import { HeldSlots } from "./held-slots.ts";
import type { StoredLimit } from "./read-limits.ts";
import { limitName, limitNames, limitsRoot } from "./limit-names.ts";

const RENEW_MS = LIMIT.leaseUs / 1_000 / 4;
/** Longest wait for the last releases at the end, in ms. */
const LAST_RELEASES_MS = 1_000;

export interface LimitsOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly limits: NamedLimits;
  /** Unique per process. */
  readonly workerId: string;
  /** Requests the work of a waiter that can have a permit. Returns false if it no longer waits, so that the next one is called. */
  readonly wake: (waiter: string, limit: string) => Promise<boolean>;
  /** Called when this process has replaced the rules of another one. */
  readonly onChanged?: (limit: string, previousBy: string) => void;
  readonly onError: (error: Error) => void;
}

/** The use of a limit by this process since its start. */
export interface LimitCounts {
  readonly name: string;
  /** Slots in use. */
  readonly held: number;
  readonly granted: number;
  /** Requests that had to wait outside of the process. */
  readonly waited: number;
  readonly lost: number;
}

export interface OpenLimits extends Limits {
  /** Stores the rules of this process for all; the last configuration counts. @throws the error of Redis */
  configure(): Promise<void>;
  counts(): LimitCounts[];
  /** Frees no slot of running work: its lease ends by itself. */
  close(): Promise<void>;
}

/** Opens the named limits that all workers of an installation share. A permit costs one round trip. */
export function openLimits(options: LimitsOptions): OpenLimits {
  return new RedisLimits(options);
}

interface Counted {
  granted: number;
  waited: number;
  lost: number;
}

interface Settled {
  readonly limit: string;
  readonly key: string;
  readonly items: readonly Item[];
}

type Item = { readonly action: "renew" | "release" | "leave"; readonly name: string };

class RedisLimits implements OpenLimits {
  readonly #options: LimitsOptions;
  readonly #redis: RedisClient;
  readonly #slots: HeldSlots;
  readonly #counts: Map<string, Counted>;
  readonly #pending = new Set<Promise<void>>();
  readonly #timers = new Timers(schedule);
  /** Waiters that wait in a call. */
  readonly #inPlace = new Map<string, AbortController>();
  /** Other than the worker's id, which a restarted worker may have again. */
  readonly #instance = crypto.randomUUID();
  #permits = 0;
  #renewals: NodeJS.Timeout | undefined;

  constructor(options: LimitsOptions) {
    this.#options = options;
    const { limits, redis, onError } = options;
    // Waits for Redis: the work that asks for a permit cannot continue without.
    this.#redis = openConsumer(redis, { gathersTurns: true }).redis;
    this.#redis.on("error", onError);
    this.#counts = new Map(
      Object.keys(limits).map((name) => [name, { granted: 0, waited: 0, lost: 0 }]),
    );
    this.#slots = new HeldSlots({
      clock: () => performance.now(),
      schedule,
      onRelease: (limit, key, name) =>
        this.#settle({ limit, key, items: [{ action: "release", name }] }),
    });
  }

  async configure(): Promise<void> {
    await Promise.all(Object.keys(this.#options.limits).map((name) => this.#store(name)));
  }

  check(use: LimitUse): void {
    findLimit(this.#options.limits, use);
  }

  async take(request: PermitRequest): Promise<PermitResult> {
    const { name, key = "", cost = 1, waiter, inPlaceMs, signal } = request;
    this.check(request);
    const untilMs = performance.now() + inPlaceMs;
    for (;;) {
      signal.throwIfAborted();
      const holder = `${this.#instance}/${(this.#permits += 1)}`;
      const sentMs = performance.now();
      const inPlaceUs = Math.max(0, Math.min(LIMIT.longestWaitUs, (untilMs - sentMs) * 1_000));
      const asked = this.#ask({ name, key }, { waiter, holder, cost, inPlaceUs }).then((given) => {
        if (given.kind === "wait") return given;
        this.#count(name).granted += 1;
        const permit = given.hasSlot ? this.#hold(name, key, { holder, sentMs }) : ENDLESS;
        return { kind: "held", permit } as const;
      });
      const answer = await unlessAborted(asked, signal, (late) => {
        if (late.kind === "held") late.permit.release();
      });
      if (answer.kind === "held") return answer;
      const afterMs = Math.ceil(answer.waitUs / 1_000);
      if (answer.waitUs > inPlaceUs) {
        this.#count(name).waited += 1;
        return { kind: "waiting", afterMs };
      }
      await this.#waitInPlace(waiter, Math.min(afterMs, LIMIT.pollUs / 1_000), signal);
    }
  }

  leave({ name, key = "", waiter }: LimitUse & Pick<PermitRequest, "waiter">): void {
    this.#settle({ limit: name, key, items: [{ action: "leave", name: waiter }] });
  }

  counts(): LimitCounts[] {
    const held = this.#slots.counts();
    return [...this.#counts].map(([name, counts]) => ({
      name,
      held: held.get(name) ?? 0,
      ...counts,
    }));
  }

  async close(): Promise<void> {
    clearInterval(this.#renewals);
    this.#timers.close();
    await Promise.race([this.#settled(), sleepMs(LAST_RELEASES_MS)]);
    await closeRedis(this.#redis);
  }

  /** Waits for the releases, and for the requests of those that they have called. */
  async #settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Ends early if this process calls the waiter. */
  async #waitInPlace(waiter: string, ms: number, signal: AbortSignal): Promise<void> {
    const called = new AbortController();
    this.#inPlace.set(waiter, called);
    await sleepMs(ms, AbortSignal.any([signal, called.signal])).catch(() => undefined);
    this.#inPlace.delete(waiter);
    signal.throwIfAborted();
  }

  async #ask({ name, key }: Pick<PermitRequest, "name"> & { key: string }, ask: PermitAsk) {
    for (;;) {
      const answer = await runScript(this.#redis, takePermitScript, {
        keys: limitNames(this.#options.prefix, name, key),
        args: { key, ...ask },
      });
      if (answer.kind === "unset") {
        await this.#store(name);
        continue;
      }
      this.#wake({ limit: name, key }, answer.called);
      return answer;
    }
  }

  #hold(name: string, key: string, slot: { holder: string; sentMs: number }): HeldPermit {
    this.#renewals ??= setInterval(() => this.#renew(), RENEW_MS).unref();
    const permit = this.#slots.add(name, key, slot);
    permit.signal.addEventListener("abort", () => (this.#count(name).lost += 1), { once: true });
    return permit;
  }

  async #store(name: string): Promise<void> {
    const { prefix, limits, workerId, onChanged } = this.#options;
    const options = limits[name] ?? {};
    const { intervalUs, burst, concurrency } = limitRules(options);
    const { kind, by } = await runScript(this.#redis, configureLimitScript, {
      keys: { limits: limitsRoot(prefix), limit: limitName(prefix, name) },
      args: {
        name,
        intervalUs,
        burst,
        concurrency,
        by: workerId,
        options: JSON.stringify(storedLimit(options)),
      },
    });
    if (kind === "changed" && by !== "" && by !== workerId) onChanged?.(name, by);
  }

  #renew(): void {
    for (const { limit, key, holders } of this.#slots.groups()) {
      const items = holders.map((name) => ({ action: "renew", name }) as const);
      this.#settle({ limit, key, items });
    }
  }

  #settle(settled: Settled): void {
    // A lease that is not renewed ends by itself.
    this.#track(this.#send(settled).catch((error: unknown) => this.#report(error)));
  }

  async #send({ limit, key, items }: Settled): Promise<void> {
    const sentMs = performance.now();
    const { lost, called } = await runScript(this.#redis, settlePermitsScript, {
      keys: limitNames(this.#options.prefix, limit, key),
      args: { key },
      each: items,
    });
    for (const { action, name } of items) {
      if (action !== "renew") continue;
      if (lost.includes(name)) this.#slots.lose(name);
      else this.#slots.renewed(name, sentMs);
    }
    this.#wake({ limit, key }, called);
  }

  #report(error: unknown): void {
    this.#options.onError(ensureError(error));
  }

  #wake({ limit, key }: { limit: string; key: string }, called: readonly string[]): void {
    if (called.length === 0) return;
    for (const waiter of called) {
      const waiting = this.#inPlace.get(waiter);
      if (waiting !== undefined) {
        waiting.abort();
        continue;
      }
      this.#track(
        this.#call({ limit, key }, waiter).catch((error: unknown) => this.#report(error)),
      );
    }
    // A called waiter may have ended; then the next one is called.
    this.#timers.start(LIMIT.graceUs / 1_000 + 1, () => this.#settle({ limit, key, items: [] }));
  }

  async #call({ limit, key }: { limit: string; key: string }, waiter: string): Promise<void> {
    const isWaiting = await this.#options.wake(waiter, limit);
    if (!isWaiting) this.leave({ name: limit, key, waiter });
  }

  #track(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  #count(name: string): Counted {
    return this.#counts.get(name) ?? { granted: 0, waited: 0, lost: 0 };
  }
}

/** Waits for the work, but not after an abort, since Redis may be unavailable for long. @throws the reason of the signal */
async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  onLate: (late: T) => void,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(ensureError(signal.reason));
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } catch (error) {
    if (signal.aborted) void work.then(onLate, () => undefined);
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Returns the options with their defaults, for users. */
function storedLimit(options: LimitOptions): StoredLimit {
  const { rate, per = "1s", concurrency } = options;
  if (rate === undefined) return defined({ concurrency });
  const { burst } = limitRules(options);
  return { rate, perMs: toMs(per, "per"), burst, ...defined({ concurrency }) };
}

/** A permit of a limit without slots. */
const ENDLESS: HeldPermit = { signal: new AbortController().signal, release: () => undefined };

/** Does not keep the process alive: a body may hold its slot after the end of its attempt. */
function schedule(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, Math.ceil(ms)).unref();
  return () => clearTimeout(timer);
}
