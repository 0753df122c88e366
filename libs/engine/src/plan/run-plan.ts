import { defined, formatKey, type ObjectKey } from "@konverge/core";
import { createWriteGroups } from "../access/write-group.ts";
import type { KubePlanOptions } from "@konverge/kube";
import { AttemptPlan, NO_LANES } from "../access/attempt-plan.ts";
import { Attempt, NO_CACHE, type ControllerRuntime } from "../access/attempt.ts";
import type { LoopWatch } from "../attempt/loop-watch.ts";
import { runAttempt, type AttemptRun } from "../attempt/run-attempt.ts";
import type { Log } from "../define/log.ts";
import type { AttemptLease } from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import { buildPlan } from "./build-plan.ts";

export interface PlanRequest {
  /** Identifies the plan. */
  readonly id: string;
  readonly key: ObjectKey;
  /** The name of the caller. */
  readonly by?: string | undefined;
  /** The class of its calls: `interactive` while a user waits, `background` for a fleet. */
  readonly class: Extract<AttemptLease["class"], "interactive" | "background">;
  readonly signal: AbortSignal;
}

export interface PlanParts {
  readonly runtime: ControllerRuntime;
  readonly loop: LoopWatch;
  readonly log: Log;
  readonly worker: string;
}

/**
 * Runs the handler of an object once, with all writes as dry runs, and returns the record of the plan. The live key is
 * not affected: no lease, lane, cache, retry, record or hint. Never throws, and ends in bounded time even if the handler does not.
 */
export async function runPlan(
  { id, key, by, class: requestClass, signal }: PlanRequest,
  { runtime, loop, log, worker }: PlanParts,
): Promise<PlanRecord> {
  const startedAtMs = Date.now();
  const text = formatKey(key);
  const { namespace, name, controller } = key;
  const fields = { controller, key: text, ...defined({ namespace }), name, plan: id };
  const lease = leaseOf({ key, text, requestClass, startedAtMs, signal });
  const { plan, run } = await planAttempt(lease, { runtime, loop, log: log.child(fields) });
  return buildPlan(plan, run, { lease, runtime, worker, startedAtMs, id, by }).record;
}

/** Runs the handler once, with all writes as dry runs. */
export async function planAttempt(
  lease: AttemptLease,
  { runtime, loop, log, ...options }: Omit<PlanParts, "worker"> & KubePlanOptions,
): Promise<{ readonly plan: AttemptPlan; readonly run: AttemptRun }> {
  const plan = new AttemptPlan(options);
  const attempt = new Attempt(
    lease,
    // A plan has no access to the state that attempts of the controller share.
    { ...runtime, cache: NO_CACHE, lanes: NO_LANES, groups: createWriteGroups() },
    { log, span: undefined, plan },
  );
  return { plan, run: await runAttempt(attempt, loop) };
}

interface PlanLease {
  readonly key: ObjectKey;
  readonly text: string;
  readonly requestClass: AttemptLease["class"];
  readonly startedAtMs: number;
  readonly signal: AbortSignal;
}

/** A lease without a queue: a plan has no epoch, and no other attempt waits for its end. */
function leaseOf({ key, text, requestClass, startedAtMs, signal }: PlanLease): AttemptLease {
  return {
    key,
    id: text,
    epoch: 0,
    attempt: 1,
    failures: 0,
    conflicts: 0,
    triggers: [],
    isResync: false,
    pauses: [],
    requestedAtMs: startedAtMs,
    startedAtMs,
    class: requestClass,
    signal,
    checkExpiry: () => signal.throwIfAborted(),
    keepLog: async () => undefined,
  };
}
