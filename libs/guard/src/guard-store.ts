import { BREAKER, KonvergeError, type AdmitRequest, type GuardLimits } from "@konverge/core";
import { readClockUs, runScript, type RedisClient } from "@konverge/redis";
import type { GuardKeys } from "./guard-keys.ts";
import { admitArguments, admitScript, type StoreAnswer } from "./scripts/admit.ts";
import { configureScript } from "./scripts/configure.ts";
import { actionScript } from "./scripts/action.ts";
import { parseTransition, type Transition } from "./transition.ts";

interface LimitsSet {
  readonly changed: boolean;
  readonly revision: number;
  /** What stood there before, with who had set it; undefined for the first. */
  readonly before?: { readonly limits: GuardLimits; readonly by: string };
}

/** An order by a person: who, and why, are kept with it. */
export interface OperatorAction {
  readonly by: string;
  readonly reason: string;
}

export interface GuardStore {
  /** False while it makes no sense to send anything. */
  readonly reachable: boolean;
  admit(ask: AdmitRequest): Promise<StoreAnswer>;
  configure(limits: GuardLimits, by: string): Promise<LimitsSet>;
  act(kind: "isolate" | "reset", action: OperatorAction): Promise<void>;
  /** Undefined goes back to the configured rate. */
  setRate(ratePerSecond: number | undefined, action: OperatorAction): Promise<void>;
  /** All that is known: the state's fields, workers that reported lately, transitions newest first. */
  read(): Promise<{
    readonly fields: Readonly<Record<string, string>>;
    readonly liveWorkers: readonly string[];
    readonly failingWorkers: readonly string[];
    readonly transitions: readonly Transition[];
  }>;
}

export function createGuardStore(redis: RedisClient, keys: GuardKeys): GuardStore {
  const { state, live, failing, transitions, channel } = keys;
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
      "no worker has told the limits of this cluster's guard yet; start one first",
    );
  };
  return {
    get reachable() {
      return redis.status === "ready";
    },
    admit: (ask) =>
      runScript(redis, admitScript, {
        keys: { state, liveWorkers: live, failingWorkers: failing, transitions },
        args: admitArguments(channel, ask),
      }),
    async configure(limits, by) {
      const { changed, revision, ...known } = await runScript(redis, configureScript, {
        keys: { state },
        args: { by, limits: limitsText(limits) },
      });
      if (known.limits === "") return { changed, revision };
      const before = { limits: parseLimits(known.limits), by: known.by };
      return { changed, revision, before };
    },
    act: (kind, action) => run(kind, action),
    setRate: (ratePerSecond, action) => run("setRate", action, ratePerSecond ?? ""),
    async read() {
      // The script forgets silent workers only when another one reports, and while it is not closed nobody does.
      const sinceUs = (await readClockUs(redis, state)) - BREAKER.quorumUs;
      const [fields, liveWorkers, failingWorkers, texts] = await Promise.all([
        redis.hgetall(state),
        redis.zrangebyscore(live, sinceUs, "+inf"),
        redis.zrangebyscore(failing, sinceUs, "+inf"),
        redis.lrange(transitions, 0, -1),
      ]);
      return { fields, liveWorkers, failingWorkers, transitions: texts.map(parseTransition) };
    },
  };
}

function limitsText(limits: GuardLimits): string {
  const { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs } = limits;
  return [ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs].join(" ");
}

function parseLimits(text: string): GuardLimits {
  const [ratePerSecond = 0, burst = 0, minRatePerSecond = 0, tokenTtlMs = 0, maxWaitMs = 0] = text
    .split(" ")
    .map(Number);
  return { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs };
}
