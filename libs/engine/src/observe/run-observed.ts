import type { Outcome } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import type { AttemptLease, Drift, DriftStore } from "@konverge/queue";
import { createAttemptTrace } from "../access/attempt-trace.ts";
import type { ControllerRuntime } from "../access/attempt.ts";
import type { RunLease } from "../attempt/attempt-handler.ts";
import { classifyError } from "../attempt/classify-error.ts";
import type { LoopWatch } from "../attempt/loop-watch.ts";
import { endedRun, type AttemptRun } from "../attempt/run-attempt.ts";
import { buildPlan } from "../plan/build-plan.ts";
import { incompleteOutcome } from "../plan/incomplete-outcome.ts";
import { planAttempt } from "../plan/run-plan.ts";
import { driftOf } from "./drift-of.ts";

export interface ObservingParts {
  readonly runtime: ControllerRuntime;
  readonly drifts: DriftStore;
  readonly loop: LoopWatch;
  readonly worker: string;
}

/** Time after which the plan of an unchanged drift is stored again, in ms. Redis keeps a plan for 7 days. */
const AGAIN_MS = 3_600_000;

/** Returns a function that only plans each attempt, and stores what the attempt would change. */
export function createObservedRun(parts: ObservingParts): RunLease {
  return async (lease, { log }) => {
    try {
      return await observe(lease, log, parts);
    } catch (error) {
      const { controller } = parts.runtime;
      const outcome = classifyError(error, { ...controller.for, name: lease.key.name });
      return { ...endedRun(outcome), isPlan: true };
    }
  };
}

async function observe(
  lease: AttemptLease,
  log: Parameters<RunLease>[1]["log"],
  { runtime, drifts, loop, worker }: ObservingParts,
): Promise<AttemptRun> {
  const startedAtMs = Date.now();
  const { plan, run } = await planAttempt(lease, { runtime, loop, log: log.child({ plan: true }) });
  const built = buildPlan(plan, run, { lease, runtime, worker, startedAtMs });
  const { record } = built;
  // A later attempt may have planned the key while this worker was suspended.
  lease.checkExpiry();
  if (record.complete && !lease.signal.aborted) {
    await note(drifts, lease.id, { drift: driftOf(built), record: JSON.stringify(record) });
  }
  return { ...run, trace: traceOf(run), outcome: outcomeOf(run, record), isPlan: true };
}

/** Stores the drift of an object, unless the same is stored. */
async function note(
  drifts: DriftStore,
  key: string,
  { drift, record }: { readonly drift: Drift | undefined; readonly record: string },
): Promise<void> {
  const known = await drifts.read(key);
  if (drift === undefined) {
    if (known !== undefined) await drifts.remove(key);
    return;
  }
  const isKnown =
    known !== undefined && JSON.stringify(known.changes) === JSON.stringify(drift.changes);
  const isFresh = known !== undefined && Date.parse(drift.at) - Date.parse(known.at) < AGAIN_MS;
  if (isKnown && isFresh) return;
  await drifts.store({ ...drift, since: known?.since ?? drift.since }, record);
}

/**
 * Nothing has been changed, so a planned attempt that succeeded waits for the next change: a handler that polls for the result of
 * its writes would poll forever.
 */
function outcomeOf({ outcome }: AttemptRun, record: PlanRecord): Outcome {
  if (!record.complete) return incompleteOutcome(outcome, record);
  return outcome.kind === "gone" ? outcome : { kind: "done" };
}

/** The trace without planned writes, which would count as real ones. */
function traceOf({ trace: { calls, log, secrets } }: AttemptRun): AttemptRun["trace"] {
  return { ...createAttemptTrace(), calls, log, secrets };
}
