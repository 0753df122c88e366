import {
  BREAKER,
  breakerLimits,
  defined,
  KonvergeError,
  type AdmitRequest,
  type GuardLimits,
} from "@konverge/core";
import { readClockUs, runScript, type RedisClient } from "@konverge/redis";
import type { GuardKeys } from "./guard-keys.ts";
import { admitArguments, admitScript, type StoreAnswer } from "./scripts/admit.ts";
import { configureScript } from "./scripts/configure.ts";
import { actionScript } from "./scripts/action.ts";
import { parseTransition, type Transition } from "./transition.ts";

interface LimitsSet {
  readonly changed: boolean;
  readonly revision: number;
  /** The previous limits and the worker that set them; undefined the first time. */
  readonly before?: { readonly limits: GuardLimits; readonly by: string };
}

/** The author and reason of an operator action. */
export interface OperatorAction {
  readonly by: string;
  readonly reason: string;
}

export interface GuardStore {
  /** False while commands would fail. */
  readonly reachable: boolean;
  admit(ask: AdmitRequest): Promise<StoreAnswer>;
  /** `isLoss`: Redis had limits before, and workers may hold tokens. `keepsLimits`: existing limits stay. */
  configure(
    limits: GuardLimits,
    by: string,
    how?: { readonly isLoss?: boolean; readonly keepsLimits?: boolean },
  ): Promise<LimitsSet>;
  act(kind: "isolate" | "reset", action: OperatorAction): Promise<void>;
  /** Undefined restores the configured rate. */
  setRate(ratePerSecond: number | undefined, action: OperatorAction): Promise<void>;
  /** Reads the state's fields, the workers with recent reports, and the transitions, newest first. */
  read(): Promise<{
    /** Unix ms of the Redis server. */
    readonly nowMs: number;
    readonly fields: Readonly<Record<string, string>>;
    readonly liveWorkers: readonly string[];
    readonly failingWorkers: readonly string[];
    readonly transitions: readonly Transition[];
  }>;
}

export function createGuardStore(redis: RedisClient, keys: GuardKeys): GuardStore {
  const { state, live, failing, transitions, order, turns, channel } = keys;
  const run = async (
    action: "isolate" | "reset" | "setRate",
    { by, reason }: OperatorAction,
    rate: number | "" = "",
  ) => {
    const answer = await runScript(redis, actionScript, {
      keys: { state, failingWorkers: failing, transitions },
      args: { channel, action, by, reason, rate },
    });
    if (answer === "changed") return;
    throw new KonvergeError(
      "not_found",
      "the guard of this cluster has no limits yet; start a worker first",
    );
  };
  return {
    get reachable() {
      return redis.status === "ready";
    },
    admit: (ask) =>
      runScript(redis, admitScript, {
        keys: { state, liveWorkers: live, failingWorkers: failing, transitions, order, turns },
        args: admitArguments(channel, ask),
      }),
    async configure(limits, by, { isLoss = false, keepsLimits = false } = {}) {
      const { changed, revision, ...known } = await runScript(redis, configureScript, {
        keys: { state },
        args: { by, limits: limitsText(limits), isLoss, keepsLimits },
      });
      if (known.limits === "") return { changed, revision };
      const before = { limits: parseLimits(known.limits), by: known.by };
      return { changed, revision, before };
    },
    act: (kind, action) => run(kind, action),
    setRate: (ratePerSecond, action) => run("setRate", action, ratePerSecond ?? ""),
    async read() {
      // The script removes silent workers only on reports, and there are none while the breaker is not closed.
      const [timeUs, skew] = await Promise.all([
        readClockUs(redis, state),
        redis.hget(state, "skewUs"),
      ]);
      const sinceUs = timeUs - Number(skew ?? 0) - BREAKER.quorumUs;
      const [fields, liveWorkers, failingWorkers, texts] = await Promise.all([
        redis.hgetall(state),
        redis.zrangebyscore(live, sinceUs, "+inf"),
        redis.zrangebyscore(failing, sinceUs, "+inf"),
        redis.lrange(transitions, 0, -1),
      ]);
      return {
        nowMs: timeUs / 1_000,
        fields,
        liveWorkers,
        failingWorkers,
        transitions: texts.map(parseTransition),
      };
    },
  };
}

/** Returns limits as the script `configure` takes them. */
export function limitsText(limits: GuardLimits): string {
  const { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs, breaker } = limits;
  const { failures, calls, failedShare, openMs, maxOpenMs } = breaker;
  const rates = [ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs];
  return [...rates, failures, calls, failedShare, openMs, maxOpenMs].join(" ");
}

/** Workers of earlier versions store no limits of the breaker. */
function parseLimits(text: string): GuardLimits {
  const [
    ratePerSecond = 0,
    burst = 0,
    minRatePerSecond = 0,
    tokenTtlMs = 0,
    maxWaitMs = 0,
    ...rest
  ] = text.split(" ").map(Number);
  const [failures, calls, failedShare, openMs, maxOpenMs] = rest;
  const breaker = breakerLimits(defined({ failures, calls, failedShare, openMs, maxOpenMs }));
  return { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs, breaker };
}
