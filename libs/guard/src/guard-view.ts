import {
  BREAKER,
  defined,
  type BreakerLimits,
  type BreakerMode,
  type GuardLimits,
} from "@konverge/core";
import type { GuardStore } from "./guard-store.ts";
import type { Transition } from "./transition.ts";

/** A time in which an API server failed. */
interface Outage {
  /** ISO 8601 time of the first failure. */
  readonly since: string;
  /** The last error, for example `timeout` or `HTTP 503`. */
  readonly lastError?: string;
  /** Set if calls succeed again: the time of the last failure. */
  readonly recoveringSince?: string;
  /** Workers whose calls failed, of those that called, when the breaker opened or now. */
  readonly failingWorkers: number;
  readonly liveWorkers: number;
}

/** The complete state of a cluster's guard. */
export interface GuardView {
  readonly cluster: string;
  readonly breaker: {
    readonly state: BreakerMode;
    readonly generation: number;
    /** ISO 8601; while open. */
    readonly openUntil?: string;
    readonly consecutiveOpenings: number;
    readonly consecutiveFailures: number;
    /** Decaying counts of the last seconds. */
    readonly recent: {
      readonly calls: number;
      readonly failed: number;
      readonly slow: number;
      readonly throttled: number;
    };
    /** Thresholds and open times that apply. */
    readonly limits: BreakerLimits;
    /** The current outage, from the first failed call until calls have succeeded for 30 s. */
    readonly outage?: Outage;
    /** The operator action that isolated it. */
    readonly isolated?: { readonly by: string; readonly reason: string; readonly at: string };
  };
  readonly rate: {
    /** Current rate of the fleet in calls per second: failures lower it, successes restore it. */
    readonly current: number;
    readonly limits: Omit<GuardLimits, "breaker">;
    readonly setBy: string;
    readonly pausedUntil?: string;
    /** The operator action that set the rate. */
    readonly override?: {
      readonly ratePerSecond: number;
      readonly by: string;
      readonly reason: string;
      readonly at: string;
    };
  };
  /** Workers that requested tokens or reported results within the last 10 s, and those that reported failures. */
  readonly workers: { readonly live: readonly string[]; readonly failing: readonly string[] };
  /** Newest first. */
  readonly transitions: readonly Transition[];
}

/** Returns undefined if no worker has ever guarded this cluster. */
export async function readGuard(
  store: GuardStore,
  cluster: string,
): Promise<GuardView | undefined> {
  const { nowMs, fields, liveWorkers, failingWorkers, transitions } = await store.read();
  if (fields["limitRate"] === undefined) return undefined;
  const num = (name: string) => Number(fields[name] ?? 0);
  const text = (name: string) => fields[name] ?? "";
  const mode = text("mode") as BreakerMode;
  // Times are those of the fleet's clock.
  const usToIso = (us: number) => new Date((us + num("skewUs")) / 1_000).toISOString();
  const note = (prefix: string) => ({
    by: text(`${prefix}By`),
    reason: text(`${prefix}Why`),
    at: new Date(num(`${prefix}AtMs`)).toISOString(),
  });
  return {
    cluster,
    breaker: {
      state: mode,
      generation: num("generation"),
      ...(mode === "open" ? { openUntil: usToIso(num("untilUs")) } : {}),
      consecutiveOpenings: mode === "closed" ? 0 : num("openings"),
      consecutiveFailures: num("consecutive"),
      recent: {
        calls: Math.round(num("total") * 10) / 10,
        failed: Math.round(num("failed") * 10) / 10,
        slow: Math.round(num("slow") * 10) / 10,
        throttled: Math.round(num("throttled") * 10) / 10,
      },
      limits: breakerLimitsOf(fields),
      ...defined({ outage: outageOf({ nowMs, fields, liveWorkers, failingWorkers, transitions }) }),
      ...(mode === "isolated" ? { isolated: note("isolated") } : {}),
    },
    rate: {
      current: num("rate"),
      limits: {
        ratePerSecond: num("limitRate"),
        burst: num("burst"),
        minRatePerSecond: num("minRate"),
        tokenTtlMs: num("ttlMs"),
        maxWaitMs: num("maxWaitMs"),
      },
      setBy: text("limitsBy"),
      ...(num("pausedUntilUs") > num("lastUs")
        ? { pausedUntil: usToIso(num("pausedUntilUs")) }
        : {}),
      ...(text("setRate") === ""
        ? {}
        : { override: { ratePerSecond: num("setRate"), ...note("setRate") } }),
    },
    workers: { live: liveWorkers, failing: failingWorkers },
    transitions,
  };
}

function outageOf({
  nowMs,
  fields,
  liveWorkers,
  failingWorkers,
  transitions,
}: Awaited<ReturnType<GuardStore["read"]>>): Outage | undefined {
  const num = (name: string) => Number(fields[name] ?? 0);
  const mode = fields["mode"] as BreakerMode;
  const isCalm = nowMs - num("outageSeenMs") > BREAKER.outageCalmMs;
  if (mode === "isolated" || (mode === "closed" && isCalm)) return undefined;
  const opening = transitions.find(({ from, to }) => from === "closed" && to === "open");
  // Workers of earlier versions store no start.
  const sinceMs = num("outageMs") || (opening?.atMs ?? nowMs);
  // While calls are stopped, no worker reports; the reports that opened the breaker apply.
  const counts = mode === "closed" ? undefined : opening;
  const lastError = fields["failure"];
  const isRecovering = mode === "closed" && num("consecutive") === 0;
  return {
    since: new Date(sinceMs).toISOString(),
    ...defined({ lastError }),
    ...(isRecovering
      ? { recoveringSince: new Date(num("outageSeenMs")).toISOString() }
      : undefined),
    failingWorkers: counts?.failingWorkers ?? failingWorkers.length,
    liveWorkers: counts?.liveWorkers ?? liveWorkers.length,
  };
}

/** Returns the breaker's limits in the fields of a guard's state. Workers of earlier versions store none. */
export function breakerLimitsOf(fields: Readonly<Record<string, string>>): BreakerLimits {
  const num = (name: string, otherwise: number) => Number(fields[name] ?? otherwise);
  return {
    failures: num("failuresToOpen", BREAKER.consecutive),
    calls: num("callsToOpen", BREAKER.minCalls),
    failedShare: num("failedShare", BREAKER.failedShare),
    openMs: num("openUs", BREAKER.openUs) / 1_000,
    maxOpenMs: num("maxOpenUs", BREAKER.maxOpenUs) / 1_000,
  };
}
