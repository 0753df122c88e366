import { randomUUID } from "node:crypto";
import {
  defined,
  endedWell,
  findCause,
  isKonvergeError,
  typeOfError,
  type JsonValue,
  shortName,
} from "@konverge/core";
import { isKubeApiError, type KubePlan } from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { PlanRecord } from "@konverge/records";
import type { AttemptPlan } from "../access/attempt-plan.ts";
import type { ControllerRuntime } from "../access/attempt.ts";
import type { AttemptRun } from "../attempt/run-attempt.ts";
import { fitPlan } from "./fit-plan.ts";
import { changesOf, type RecordedChange } from "./plan-changes.ts";
import { planHash } from "./plan-hash.ts";

export interface PlanContext {
  readonly lease: Pick<AttemptLease, "id" | "key">;
  readonly runtime: Pick<ControllerRuntime, "controller" | "client">;
  readonly worker: string;
  readonly startedAtMs: number;
  /** Default: a new one. */
  readonly id?: string;
  /** The user who requested it. Default: none. */
  readonly by?: string | undefined;
}

/** Changes that a record lists; the rest is counted. */
const MOST_CHANGES = 200;
const MOST_WRITES = 20;
const MOST_LISTED = 100;
const MOST_LISTED_GAPS = 50;

/** A planned attempt: its record, and the lists that the record may shorten. */
export interface BuiltPlan extends Pick<PlanRecord, "changes" | "externals" | "runs" | "gaps"> {
  readonly record: PlanRecord;
  /** True if these lists are incomplete too. */
  readonly isCut: boolean;
}

/** Makes the record of a planned attempt. */
export function buildPlan(plan: AttemptPlan, run: AttemptRun, context: PlanContext): BuiltPlan {
  const { outcome, object, trace } = run;
  const { lease, runtime, worker, startedAtMs, id = randomUUID(), by } = context;
  const { controller, client } = runtime;
  const finishedAtMs = Date.now();
  const changes = [...plan.clusters].flatMap(([cluster, kubePlan]) =>
    changesOf(kubePlan, {
      cluster: cluster === lease.key.cluster ? undefined : cluster,
      isSensitive: (type) =>
        client.isSensitive(type) ||
        // Only the calls have the mark of a type that the handler defines.
        [...plan.clusters.values()].some(({ objects }) => objects.isSensitive(type)),
      secrets: trace.secrets,
      sinceMs: startedAtMs,
    }),
  );
  const error = errorOf(run);
  const gaps = gapsOf(plan, changes).map(({ about, reason }) => ({
    about: trace.secrets.scrub(about).slice(0, 300),
    reason: trace.secrets.scrub(reason).slice(0, 300),
  }));
  const record = fitPlan({
    kind: "plan",
    id,
    key: lease.id,
    controller: controller.name,
    worker,
    ...defined({ by }),
    ...defined({
      uid: object?.metadata.uid,
      generation: object?.metadata.generation,
      versionBefore: object?.metadata.resourceVersion,
    }),
    startedAt: new Date(startedAtMs).toISOString(),
    finishedAt: new Date(finishedAtMs).toISOString(),
    durationMs: Math.max(0, finishedAtMs - startedAtMs),
    outcome: outcome.kind,
    ...("afterMs" in outcome ? { afterMs: Math.round(outcome.afterMs) } : {}),
    ...("cause" in outcome ? { cause: outcome.cause.slice(0, 200) } : {}),
    ...defined({ error }),
    complete: (endedWell(outcome.kind) || outcome.kind === "gone") && !plan.isRefused,
    hash: hashOf(plan, changes),
    summary: summaryOf(changes),
    changes: changes.slice(0, MOST_CHANGES).map(({ shown }) => withFewWrites(shown)),
    ...(changes.length > MOST_CHANGES ? { moreChanges: changes.length - MOST_CHANGES } : {}),
    events: plan.events.map(({ about, event: { type, reason, message } }) => ({
      type,
      reason,
      message: message.slice(0, 1_024),
      kind: about.kind,
      name: about.name,
      ...defined({ namespace: about.namespace }),
    })),
    externals: plan.externals.slice(0, MOST_LISTED).map((name) => name.slice(0, 200)),
    runs: plan.runs.slice(0, MOST_LISTED),
    gaps: gaps.slice(0, MOST_LISTED_GAPS),
    ...moreNotes(plan, gaps.length),
    reads: sum([...plan.clusters.values()].map(({ objects }) => countOf(objects.reads))),
    calls: {
      count: trace.calls.count,
      durationMs: Math.round(trace.calls.durationMs),
      rateLimitMs: Math.round(trace.calls.rateLimitMs),
    },
    ...logOf(run),
  });
  return {
    record,
    changes: changes.map(({ shown }) => shown),
    externals: plan.externals,
    runs: plan.runs,
    gaps,
    isCut: [...plan.clusters.values()].some(({ objects }) => objects.omitted.gaps > 0),
  };
}

function withFewWrites(change: PlanRecord["changes"][number]): typeof change {
  const { writes } = change;
  if (writes.length <= MOST_WRITES) return change;
  const moreWrites = writes.length - MOST_WRITES;
  return { ...change, writes: writes.slice(0, MOST_WRITES), moreWrites };
}

/** Identifies exactly this plan: its changes, all writes, and the versions that it has read. */
function hashOf(plan: AttemptPlan, changes: readonly RecordedChange[]): string {
  const reads = [...plan.clusters].flatMap(([cluster, { objects }]) =>
    objects.reads.kept.map((read) => ({ cluster, ...read, version: read.version ?? null })),
  );
  const digests = [...plan.clusters].flatMap(([cluster, { objects }]) =>
    objects.reads.digests.map((digest) => `${cluster} ${digest}`),
  );
  const value = {
    changes: sorted(changes.map(({ hashed }) => hashed)),
    writes: sorted(
      [...plan.clusters].flatMap(([cluster, { writes }]) => writesOf(cluster, writes)),
    ),
    reads: sorted(reads),
    digests: digests.toSorted(),
    runs: sorted(plan.runs),
    externals: [...plan.externals].toSorted(),
  };
  return planHash(value as unknown as JsonValue);
}

/** The writes of each object, in order. Writes of different objects may run at the same time. */
function writesOf(cluster: string, { sends }: KubePlan["writes"]): object[] {
  const targets = new Map<string, string[]>();
  for (const { target, shown, failed } of sends) {
    // Without the digest of a creation whose name the server draws: it covers values that users may not see.
    const [at = ""] = target.split("?", 1);
    const known = targets.get(at) ?? [];
    targets.set(at, known);
    known.push(failed ? `${shown} rejected` : shown);
  }
  const unordered = new Set(
    sends.flatMap(({ target }) => (target.includes("?") ? target.split("?", 1) : [])),
  );
  return [...targets].map(([target, writes]) => ({
    cluster,
    target,
    writes: unordered.has(target) ? writes.toSorted() : writes,
  }));
}

function countOf({ kept, digests, omitted }: KubePlan["objects"]["reads"]): number {
  return kept.length + digests.length + omitted;
}

/** Calls that run at the same time end in any order. */
function sorted(values: readonly object[]): unknown[] {
  return values
    .map((value) => [JSON.stringify(value), value] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, value]) => value);
}

function summaryOf(changes: readonly RecordedChange[]): PlanRecord["summary"] {
  const summary = { created: 0, changed: 0, deleted: 0, replaced: 0, unchanged: 0 };
  for (const { shown } of changes) summary[shown.action] += 1;
  return summary;
}

function gapsOf(
  plan: AttemptPlan,
  changes: readonly RecordedChange[],
): { readonly about: string; readonly reason: string }[] {
  const warnings = changes.flatMap(({ shown: { resource, namespace, name }, warning }) => {
    if (warning === undefined) return [];
    const path = shortName({ namespace, name });
    return [{ about: `${resource} ${path}`, reason: warning }];
  });
  const runs = plan.runs.map(({ workflow }) => ({
    about: `run of workflow ${workflow}`,
    reason:
      "whether the run exists, and its result, are unknown; the plan continues as if it had just been queued",
  }));
  return [
    ...plan.refusals,
    ...[...plan.clusters.values()].flatMap(({ objects }) => objects.gaps),
    ...warnings,
    ...runs,
  ];
}

function moreNotes(plan: AttemptPlan, gaps: number): { readonly moreNotes?: number } {
  const omitted = [...plan.clusters.values()].map(({ objects }) => objects.omitted);
  const more =
    plan.omittedEvents +
    Math.max(0, plan.externals.length - MOST_LISTED) +
    Math.max(0, plan.runs.length - MOST_LISTED) +
    sum(omitted.map((each) => each.gaps + each.reads)) +
    Math.max(0, gaps - MOST_LISTED_GAPS);
  return more === 0 ? {} : { moreNotes: more };
}

/** The message is safe: the attempt has redacted it. */
function errorOf({ outcome }: AttemptRun): PlanRecord["error"] {
  if (!("error" in outcome) || outcome.error === undefined) return undefined;
  const { error } = outcome;
  const ours = findCause(error, isKonvergeError);
  const reason = isKubeApiError(ours) && ours.reason !== "" ? { reason: ours.reason } : {};
  return {
    code: ours?.code ?? typeOfError(error),
    ...reason,
    message: error.message.slice(0, 1_000),
  };
}

function logOf({ trace, outcome }: AttemptRun): Pick<PlanRecord, "log"> {
  const log = trace.log.end(!endedWell(outcome.kind))?.log;
  return log === undefined ? {} : { log: [...log] };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
