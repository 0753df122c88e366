import { endedWell, KonvergeError, type Outcome } from "@konverge/core";
import type { Approval, ApprovalStore, AttemptLease } from "@konverge/queue";
import { randomUUID } from "node:crypto";
import { AttemptHold, type AttemptHoldOptions } from "../access/attempt-hold.ts";
import type { AttemptPlan } from "../access/attempt-plan.ts";
import {
  Attempt,
  NO_CACHE,
  type AttemptOptions,
  type ControllerRuntime,
} from "../access/attempt.ts";
import type { ObjectCache } from "../access/object-cache.ts";
import { createWriteGroups } from "../access/write-group.ts";
import type { RunLease } from "../attempt/attempt-handler.ts";
import { classifyError } from "../attempt/classify-error.ts";
import type { LoopWatch } from "../attempt/loop-watch.ts";
import { readObject } from "../attempt/read-object.ts";
import { endedRun, runAttempt, type AttemptRun } from "../attempt/run-attempt.ts";
import type { ApprovalPlan, ApprovalRule } from "../define/approval-rule.ts";
import { buildPlan, type BuiltPlan } from "../plan/build-plan.ts";
import { incompleteOutcome } from "../plan/incomplete-outcome.ts";
import { planAttempt } from "../plan/run-plan.ts";
import { openApprovalGate, type ApprovalGate, type GateParts } from "./approval-gate.ts";

export interface ApprovalParts {
  readonly runtime: ControllerRuntime;
  readonly rule: Required<ApprovalRule>;
  readonly approvals: ApprovalStore;
  readonly newestEpoch: GateParts["newestEpoch"];
  readonly loop: LoopWatch;
  readonly worker: string;
}

/**
 * Returns a function that plans each attempt, and then makes exactly the planned writes. If the rule selects the plan, the attempt
 * ends without writes until users have approved it.
 */
export function createApprovedRun(parts: ApprovalParts): RunLease {
  return async (lease, options) => {
    try {
      const gate = await openApprovalGate(lease, parts);
      return await runApproved({ lease, options, gate, parts });
    } catch (error) {
      const { controller } = parts.runtime;
      return endedRun(classifyError(error, { ...controller.for, name: lease.key.name }));
    }
  };
}

interface Running {
  readonly lease: AttemptLease;
  readonly options: Pick<AttemptOptions, "log" | "span">;
  readonly gate: ApprovalGate;
  readonly parts: ApprovalParts;
}

async function runApproved(running: Running): Promise<AttemptRun> {
  const { lease, options, gate, parts } = running;
  const known = await gate.read();
  if (known !== undefined && (await stillWaits(running, known)) && !(await gate.isDropped())) {
    const joined = await gate.join();
    if (joined?.state === "awaiting" || joined?.state === "rejected") return waiting();
  }
  const startedAtMs = Date.now();
  const { runtime, loop, worker } = parts;
  const log = options.log.child({ plan: true });
  const salt = known?.salt ?? randomUUID();
  const { plan, run } = await planAttempt(lease, { runtime, loop, log, isExact: true, salt });
  if (run.outcome.kind === "gone") {
    if (known !== undefined) await gate.drop();
    await gate.forgetRequesters();
    return endedRun(run.outcome);
  }
  const built = buildPlan(plan, run, { lease, runtime, worker, startedAtMs });
  const { record } = built;
  if (!record.complete) return endedRun(incompleteOutcome(run.outcome, record));
  // The rule could miss changes in a part that was cut.
  if (!parts.rule.when(planFor(built)) && !built.isCut) {
    if (known !== undefined) await gate.drop();
    const made = await apply(running, plan, { admit: async () => undefined, isStrict: false });
    if (endedWell(made.outcome.kind)) await gate.forgetRequesters();
    return made;
  }
  const issue = issueOf(plan);
  if (issue !== undefined) return endedRun(issue);
  const approval = await gate.propose(record, salt);
  if (approval.state !== "approved") return waiting();
  const applied = await apply(running, plan, {
    admit: () => gate.begin(record.hash),
    isStrict: true,
  });
  // Otherwise the next attempt plans what is left, which needs another approval.
  if (endedWell(applied.outcome.kind)) {
    await gate.finish(record.hash);
    await gate.forgetRequesters();
  }
  return applied;
}

/** True if neither the object nor its children have changed since a plan that users have not approved. */
async function stillWaits({ lease, options, parts }: Running, known: Approval): Promise<boolean> {
  if (known.state !== "awaiting" && known.state !== "rejected") return false;
  const { triggers, failures, conflicts } = lease;
  const isRetry = failures > 0 || conflicts > 0 || triggers.length === 0;
  const mayDiffer = triggers.some(
    ({ kind, version }) =>
      version !== undefined || (kind !== "watch" && kind !== "http" && kind !== "cli"),
  );
  if (isRetry || mayDiffer) return false;
  const attempt = new Attempt(lease, parts.runtime, options);
  try {
    const metadata = (await readObject(attempt))?.metadata;
    return metadata?.uid === known.uid && metadata?.resourceVersion === known.version;
  } finally {
    attempt.end();
  }
}

/** Runs the handler again, with the planned writes only. */
async function apply(
  { lease, options, parts }: Running,
  plan: AttemptPlan,
  holding: AttemptHoldOptions,
): Promise<AttemptRun> {
  const { cache } = parts.runtime;
  const hold = new AttemptHold(plan, holding);
  const runtime = {
    ...parts.runtime,
    // Reads as the plan has read, from the server; later attempts need the versions of the writes.
    cache: {
      ...NO_CACHE,
      noteWrite: (...noted: Parameters<ObjectCache["noteWrite"]>) => cache.noteWrite(...noted),
      noteDelete: (...noted: Parameters<ObjectCache["noteDelete"]>) => cache.noteDelete(...noted),
      noteConflict: (...noted: Parameters<ObjectCache["noteConflict"]>) =>
        cache.noteConflict(...noted),
    },
    lanes: hold.lanes(parts.runtime.lanes),
    groups: createWriteGroups(),
  };
  const run = await runAttempt(new Attempt(lease, runtime, { ...options, hold }), parts.loop);
  const { deviation } = hold;
  // The handler may have caught it.
  if (deviation === undefined || run.outcome.kind === "cancelled") return run;
  return { ...run, outcome: { kind: "retry", error: deviation } };
}

/** Returns the outcome of an attempt whose plan cannot be approved; undefined if it can be. */
function issueOf(plan: AttemptPlan): Outcome | undefined {
  if (plan.omittedReads > 0) {
    const detail = `the plan has ${plan.omittedReads} more reads than its hash can cover, so it cannot be approved; read fewer objects in an attempt`;
    return { kind: "rejected", error: new KonvergeError("not_plannable", detail) };
  }
  if (!plan.isChanged) return undefined;
  const detail = "an object has changed while it was planned; the key is planned again";
  return { kind: "retry", error: new KonvergeError("approval_stale", detail) };
}

function planFor({ record, changes, externals, runs, gaps }: BuiltPlan): ApprovalPlan {
  const { created, changed, deleted, replaced } = record.summary;
  return {
    creates: created,
    updates: changed,
    deletes: deleted + replaced,
    changes,
    externals,
    runs,
    gaps,
  };
}

function waiting(): AttemptRun {
  return endedRun({ kind: "awaitApproval" });
}
