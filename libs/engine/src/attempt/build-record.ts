import {
  defined,
  endedWell,
  findCause,
  isKonvergeError,
  typeOfError,
  resourceId,
  type JsonObject,
  type Trigger,
} from "@konverge/core";
import {
  findTakenFields,
  isKubeApiError,
  type AttemptSecrets,
  type ConflictRecord,
} from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import { redactPatch, type AttemptRecord, type Hint } from "@konverge/records";
import type { AttemptTrace, WriteTrace } from "../access/attempt-trace.ts";
import { scrubValue } from "./handler-log.ts";
import type { AttemptRun } from "./run-attempt.ts";

export interface RecordContext {
  readonly controller: string;
  readonly worker: string;
  readonly hints: readonly Hint[];
  readonly traceId: string | undefined;
}

/** The record of an ended attempt; its backoff is not known yet. */
export function buildRecord(
  attempt: AttemptLease,
  run: AttemptRun,
  { controller, worker, hints, traceId }: RecordContext,
): AttemptRecord {
  const { outcome, trace, eventLoopBlockedMs, isPlan = false } = run;
  const finishedAtMs = Date.now();
  return {
    ...(isPlan ? { kind: "plan" } : {}),
    id: `${attempt.id}#${attempt.epoch}`,
    key: attempt.id,
    epoch: attempt.epoch,
    controller,
    attempt: attempt.attempt,
    worker,
    triggers: attempt.triggers.slice(-10).map(forDisplay),
    requestedAt: new Date(attempt.requestedAtMs).toISOString(),
    startedAt: new Date(attempt.startedAtMs).toISOString(),
    finishedAt: new Date(finishedAtMs).toISOString(),
    durationMs: Math.max(0, finishedAtMs - attempt.startedAtMs),
    waits: waitsOf(attempt, trace),
    ...objectFields(run),
    outcome: outcome.kind,
    ...("afterMs" in outcome ? { afterMs: Math.round(outcome.afterMs) } : {}),
    ...("cause" in outcome ? { cause: outcome.cause.slice(0, 200) } : {}),
    ...defined({ error: errorOf(run) }),
    ...traceFields(trace, controller),
    ...(trace.runs.length === 0 ? {} : { runs: [...trace.runs] }),
    calls: { count: trace.calls.count, durationMs: Math.round(trace.calls.durationMs) },
    ...(hints.length === 0 ? {} : { hints: [...hints] }),
    ...trace.log.end(!endedWell(outcome.kind)),
    ...defined({ eventLoopBlockedMs, traceId }),
  };
}

/** The writes and conflicts of all clusters, those of the own one first. */
function traceFields(
  trace: AttemptTrace,
  controller: string,
): Pick<AttemptRecord, "writes" | "conflicts"> {
  const own = clusterFields(trace, controller);
  const remotes = [...trace.remotes].map(([cluster, remote]) => {
    const { writes, conflicts } = clusterFields(remote, controller);
    return {
      writes: writes.map((write) => ({ cluster, ...write })),
      conflicts: conflicts.map((conflict) => ({ cluster, ...conflict })),
    };
  });
  return {
    writes: [own, ...remotes].flatMap(({ writes }) => writes),
    conflicts: [own, ...remotes].flatMap(({ conflicts }) => conflicts),
  };
}

function clusterFields(
  trace: AttemptTrace,
  controller: string,
): Pick<AttemptRecord, "writes" | "conflicts"> {
  const landed = trace.writes.map((write) => writeRecord(write, trace, controller));
  const settled = new Set(landed.flatMap(({ settledConflicts }) => settledConflicts));
  return {
    writes: landed.map(({ record }) => record),
    conflicts: trace.conflicts
      .filter((conflict) => !settled.has(conflict))
      .map((conflict) => ({
        ...conflictRecord(conflict),
        resource: resourceId(conflict.ref),
        name: conflict.ref.name,
        ...defined({ namespace: conflict.ref.namespace, subresource: conflict.subresource }),
      })),
  };
}

function waitsOf(
  { startedAtMs, requestedAtMs }: AttemptLease,
  { calls, laneMs, conflicts }: AttemptTrace,
): AttemptRecord["waits"] {
  return {
    queueMs: Math.max(0, startedAtMs - requestedAtMs),
    rateLimitMs: Math.round(calls.rateLimitMs),
    laneMs: Math.round(laneMs),
    conflictMs: Math.round(conflicts.reduce((sum, { waitedMs }) => sum + waitedMs, 0)),
    backoffMs: 0,
  };
}

/** The reconciled object as it was read, and after the attempt's last write of it. */
function objectFields({ object, trace }: AttemptRun) {
  const uid = object?.metadata.uid;
  const written = trace.writes.findLast((write) => write.object.metadata.uid === uid);
  const after = written?.object ?? object;
  const { status } = (after ?? {}) as {
    readonly status?: { readonly observedGeneration?: unknown };
  };
  const observed = status?.observedGeneration;
  return defined({
    uid,
    generation: object?.metadata.generation,
    observedGeneration: typeof observed === "number" ? observed : undefined,
    versionBefore: object?.metadata.resourceVersion,
    versionAfter: after?.metadata.resourceVersion,
  });
}

function writeRecord(
  write: WriteTrace,
  { conflicts, secrets }: Pick<AttemptTrace, "conflicts" | "secrets">,
  controller: string,
) {
  const resource = resourceId(write.type);
  const settledConflicts = conflicts.filter(
    ({ ref, subresource }) =>
      write.verb === "patch" &&
      resourceId(ref) === resource &&
      ref.name === write.name.name &&
      ref.namespace === write.name.namespace &&
      subresource === write.subresource,
  );
  const { fieldManager = `konverge/${controller}` } = write;
  const fieldsTakenOver =
    write.before === undefined || write.patch === undefined
      ? []
      : findTakenFields(write.before, write.object, {
          manager: fieldManager,
          sensitive: write.sensitive === true,
          patch: write.patch,
        });
  const record: AttemptRecord["writes"][number] = {
    verb: write.verb,
    resource,
    name: write.name.name,
    fieldManager,
    ...defined({
      namespace: write.name.namespace,
      subresource: write.subresource,
      fromVersion: write.fromVersion,
      toVersion: write.verb === "delete" ? undefined : write.object.metadata.resourceVersion,
      patch: patchOf(write, secrets),
    }),
    conflicts: settledConflicts.map(conflictRecord),
    ...(fieldsTakenOver.length === 0 ? {} : { fieldsTakenOver }),
  };
  return { record, settledConflicts };
}

/** Returns the patch without values of sensitive objects, also without those that the handler has copied. */
function patchOf({ type, patch }: WriteTrace, secrets: AttemptSecrets): JsonObject | undefined {
  if (patch === undefined) return undefined;
  const redacted = redactPatch(resourceId(type), patch);
  return secrets.isEmpty ? redacted : (scrubValue(redacted, secrets) as JsonObject);
}

function conflictRecord({ readVersion, foundVersion, competingWriters, waitedMs }: ConflictRecord) {
  return {
    readVersion,
    ...defined({ foundVersion }),
    competingWriters: competingWriters
      .slice(0, 5)
      .map((winner) => ({ ...winner, paths: winner.paths.slice(0, 10) })),
    waitedMs: Math.round(waitedMs),
  };
}

/** The message is safe: the attempt has redacted it. */
function errorOf({ outcome, frames }: AttemptRun): AttemptRecord["error"] {
  if (!("error" in outcome) || outcome.error === undefined) return undefined;
  const { error } = outcome;
  const ours = findCause(error, isKonvergeError);
  const code = ours?.code ?? typeOfError(error);
  const reason = isKubeApiError(ours) && ours.reason !== "" ? { reason: ours.reason } : {};
  return {
    code,
    ...reason,
    message: error.message.slice(0, 500),
    ...defined({ frames: frames && [...frames] }),
  };
}

/** Without the versions of watches, which only the attempt needs. */
function forDisplay(trigger: Trigger): Omit<Trigger, "seen"> {
  const { seen: _, ...shown } = trigger;
  return shown;
}
