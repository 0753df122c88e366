import {
  BREAKER,
  ensureError,
  KonvergeError,
  type AdmitAnswer,
  type AdmitAsk,
  type BreakerMode,
  type GuardLimits,
} from "@konverge/core";
import { readClockUs, runScript, type RedisClient } from "@konverge/redis";
import type { GuardKeys } from "./guard-keys.ts";
import { admitArguments, admitScript } from "./scripts/admit.ts";
import { orderScript } from "./scripts/order.ts";

/** A change of the breaker, as it is kept and logged: with the evidence that caused it. */
export interface Transition {
  readonly atMs: number;
  readonly from: BreakerMode;
  readonly to: BreakerMode;
  /** consecutive, failedShare, slow or strained (calls), probe, timer, or order (a person). */
  readonly reason: string;
  readonly generation: number;
  /** The worker whose report decided. */
  readonly worker?: string;
  readonly openMs?: number;
  readonly calls?: number;
  readonly failed?: number;
  readonly slow?: number;
  readonly throttled?: number;
  readonly consecutive?: number;
  readonly failingWorkers?: number;
  readonly liveWorkers?: number;
  /** Of an order. */
  readonly by?: string;
  readonly why?: string;
}

export type StoreAnswer =
  | { readonly kind: "unset" }
  | (AdmitAnswer & {
      readonly kind: "answer";
      /** Grows with each change of the limits. */
      readonly revision: number;
      readonly transition?: Transition;
    });

interface LimitsSet {
  readonly changed: boolean;
  readonly revision: number;
  /** What stood there before, with who had set it; undefined for the first. */
  readonly before?: { readonly limits: GuardLimits; readonly by: string };
}

/** An order by a person: who, and why, are kept with it. */
export interface Order {
  readonly by: string;
  readonly reason: string;
}

export interface GuardStore {
  /** False while it makes no sense to send anything. */
  readonly reachable: boolean;
  admit(ask: AdmitAsk): Promise<StoreAnswer>;
  configure(limits: GuardLimits, by: string): Promise<LimitsSet>;
  order(kind: "isolate" | "reset", order: Order): Promise<void>;
  /** Undefined goes back to the configured rate. */
  setRate(ratePerSecond: number | undefined, order: Order): Promise<void>;
  /** All that is known: the state's fields, workers that reported lately, transitions newest first. */
  read(): Promise<{
    readonly fields: Readonly<Record<string, string>>;
    readonly liveWorkers: readonly string[];
    readonly failingWorkers: readonly string[];
    readonly transitions: readonly Transition[];
  }>;
}

export function createGuardStore(redis: RedisClient, keys: GuardKeys): GuardStore {
  const names = [keys.state, keys.live, keys.failing, keys.transitions];
  const runOrder = async (args: readonly (string | number)[]) => {
    const answer = await runScript(redis, orderScript, names, [keys.channel, ...args]);
    const [kind = "", revision, limits = "", by = ""] = (answer as readonly unknown[]).map(String);
    if (kind === "unset") {
      throw new KonvergeError(
        "not_found",
        "no worker has told the limits of this cluster's guard yet; start one first",
      );
    }
    const before = limits === "" ? {} : { before: { limits: parseLimits(limits), by } };
    return { changed: kind === "changed", revision: Number(revision), ...before };
  };
  return {
    get reachable() {
      return redis.status === "ready";
    },
    async admit(ask) {
      const answer = (await runScript(
        redis,
        admitScript,
        names,
        admitArguments(keys.channel, ask),
      )) as readonly [string, ...unknown[]];
      if (answer[0] === "unset") return { kind: "unset" };
      const [mode, generation, granted, waitUs, ticket, rate, live, revision, transition] =
        answer as [BreakerMode, number, number, number, string, number, number, number, string];
      return {
        kind: "answer",
        mode,
        generation,
        granted,
        waitUs,
        ticket,
        ratePerSecond: rate / 1_000,
        live,
        revision,
        ...(transition === "" ? {} : { transition: JSON.parse(transition) as Transition }),
      };
    },
    configure: ({ ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs }, by) =>
      runOrder([
        "configure",
        by,
        "",
        ratePerSecond,
        burst,
        minRatePerSecond,
        tokenTtlMs,
        maxWaitMs,
      ]),
    async order(kind, { by, reason }) {
      await runOrder([kind, by, reason]);
    },
    async setRate(ratePerSecond, { by, reason }) {
      await runOrder(["setRate", by, reason, ratePerSecond ?? ""]);
    },
    async read() {
      // The script forgets silent workers only when another one reports, and while it is not closed nobody does.
      const sinceUs = (await readClockUs(redis, keys.state)) - BREAKER.quorumUs;
      const [fields, liveWorkers, failingWorkers, transitions] = await Promise.all([
        redis.hgetall(keys.state),
        redis.zrangebyscore(keys.live, sinceUs, "+inf"),
        redis.zrangebyscore(keys.failing, sinceUs, "+inf"),
        redis.lrange(keys.transitions, 0, -1),
      ]);
      return { fields, liveWorkers, failingWorkers, transitions: transitions.map(parseTransition) };
    },
  };
}

function parseTransition(text: string): Transition {
  try {
    return JSON.parse(text) as Transition;
  } catch (error) {
    throw new KonvergeError("internal", "a stored transition of the guard is not JSON", {
      cause: ensureError(error),
    });
  }
}

function parseLimits(text: string): GuardLimits {
  const [ratePerSecond = 0, burst = 0, minRatePerSecond = 0, tokenTtlMs = 0, maxWaitMs = 0] = text
    .split(" ")
    .map(Number);
  return { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs };
}
