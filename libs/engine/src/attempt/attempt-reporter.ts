import { redactPatch, type AttemptRecord, type Hint } from "@konverge/records";
import {
  defined,
  endedWell,
  findCause,
  isKonvergeError,
  parseKey,
  resourceId,
  type Outcome,
  type Trigger,
} from "@konverge/core";
import { findTakenFields, isKubeApiError, type ConflictRecord } from "@konverge/kube";
import type { AttemptClosed, AttemptEnd, AttemptLease, LostAttempt } from "@konverge/queue";
import type { AttemptSpan, Metrics } from "@konverge/telemetry";
import type { WriteTrace } from "../access/attempt-trace.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import { findHints } from "./find-hints.ts";
import type { AttemptRun } from "./run-attempt.ts";

export interface AttemptReporterOptions {
  readonly controller: Controller;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly workerId: string;
  /** What to say about a key beyond this attempt, such as that it runs in circles. */
  readonly hintsOf?: (key: string) => readonly Hint[];
  /** Told of each record whose attempt was not fenced. */
  readonly onRecord?: (attempt: AttemptLease, record: AttemptRecord, bytes: number) => void;
}

/** Makes an attempt explainable: its record, one log line, its counters (P11). */
export interface AttemptReporter {
  /** The handler's logger, with the key's fields bound. */
  readonly logFor: (attempt: AttemptLease, traceId: string | undefined) => Log;
  /** Called once, when the handler has ended; returns what makes the record, told for how long the key waits now. */
  readonly finished: (
    attempt: AttemptLease,
    run: AttemptRun,
    span?: AttemptSpan,
  ) => (backoffMs: number) => string;
  /** Called when an attempt is found that never ended. */
  readonly lost: (lost: LostAttempt) => void;
  /** Called when the queue has stored the end, or refused it. */
  readonly closed: (attempt: AttemptLease, end: AttemptEnd, closed: AttemptClosed) => void;
}

/** The queue refuses larger ones; a record is an explanation, not a copy. */
const MAX_RECORD_BYTES = 16_000;

export function createAttemptReporter(options: AttemptReporterOptions): AttemptReporter {
  const { controller, metrics, workerId } = options;
  const log = options.log.child({ controller: controller.name });
  // Weak: an end that Redis never took closes nothing.
  const records = new WeakMap<AttemptLease, { record: AttemptRecord; bytes: number }>();

  return {
    logFor: (attempt, traceId) => {
      metrics.attemptStarted(controller.name, attempt);
      const { namespace, name } = attempt.key;
      const { id: key, epoch, attempt: number } = attempt;
      const fields = { key, namespace, name, epoch, attempt: number };
      return log.child({ ...fields, ...optional("traceId", traceId) });
    },
    finished: (attempt, run, span) => {
      metrics.attemptEnded(attempt);
      const record = {
        ...buildRecord(attempt, run, {
          controller: controller.name,
          worker: workerId,
          hints: [...findHints(run, attempt.key), ...(options.hintsOf?.(attempt.id) ?? [])],
        }),
        ...optional("traceId", span?.traceId),
      };
      span?.end({ outcome: run.outcome.kind, error: record.error });
      return (backoffMs) => {
        const complete = { ...record, waits: { ...record.waits, backoffMs } };
        const text = fitRecord(complete);
        records.set(attempt, { record: complete, bytes: Buffer.byteLength(text) });
        return text;
      };
    },
    lost: ({ id: key, consecutive }) => {
      metrics.attemptLost(controller.name);
      const { namespace, name } = parseKey(key);
      log.warn({ key, namespace, name, consecutive }, "attempt lost");
    },
    closed: (attempt, { outcome }, { fenced, retryAfterMs }) => {
      const kept = records.get(attempt);
      if (kept === undefined) return;
      const { record } = kept;
      if (!fenced) options.onRecord?.(attempt, record, kept.bytes);
      const conflicts = conflictCount(record);
      metrics.attemptFinished({
        controller: controller.name,
        outcome: outcome.kind,
        durationMs: record.durationMs,
        queueMs: record.waits.queueMs,
        rateLimitMs: record.waits.rateLimitMs,
        laneMs: record.waits.laneMs,
        conflicts,
        writes: record.writes.length,
        apiCalls: record.calls.count,
        retried: retryAfterMs !== undefined && outcome.kind !== "requeueAfter",
        timedOut: record.error?.code === "timed_out",
        fenced,
      });
      const fields = {
        key: attempt.id,
        epoch: attempt.epoch,
        attempt: attempt.attempt,
        ...optional("traceId", record.traceId),
        trigger: attempt.triggers.at(-1)?.kind ?? "retry",
        outcome: outcome.kind,
        conflicts,
        writes: record.writes.length,
        calls: record.calls.count,
        waitMs: record.waits,
        durationMs: record.durationMs,
        ...(fenced ? { fenced } : {}),
        ...defined({ err: record.error }),
      };
      if (record.error !== undefined && outcome.kind !== "conflict") {
        log.warn(fields, "reconcile failed");
        return;
      }
      const changedNothing = record.writes.length === 0 && conflicts === 0 && !fenced;
      if (changedNothing && endedWell(outcome.kind)) log.debug(fields, "reconciled");
      else log.info(fields, "reconciled");
    },
  };
}

function buildRecord(
  attempt: AttemptLease,
  { outcome, trace, object, eventLoopBlockedMs }: AttemptRun,
  {
    controller,
    worker,
    hints,
  }: { readonly controller: string; readonly worker: string; readonly hints: readonly Hint[] },
): AttemptRecord {
  const finishedAtMs = Date.now();
  const landed = trace.writes.map((write) => writeRecord(write, trace.conflicts, controller));
  const settled = new Set(landed.flatMap(({ settledConflicts }) => settledConflicts));
  const after = trace.writes.findLast(
    ({ object: written }) => written.metadata.uid === object?.metadata.uid,
  );
  const status = (
    (after?.object ?? object) as
      | { readonly status?: { readonly observedGeneration?: unknown } }
      | undefined
  )?.status;
  const observed = status?.observedGeneration;
  return {
    id: `${attempt.id}#${attempt.epoch}`,
    key: attempt.id,
    epoch: attempt.epoch,
    controller,
    ...optional("uid", object?.metadata.uid),
    attempt: attempt.attempt,
    worker,
    triggers: attempt.triggers.slice(-10).map(toldOf),
    requestedAt: new Date(attempt.requestedAtMs).toISOString(),
    startedAt: new Date(attempt.startedAtMs).toISOString(),
    finishedAt: new Date(finishedAtMs).toISOString(),
    durationMs: Math.max(0, finishedAtMs - attempt.startedAtMs),
    waits: {
      queueMs: Math.max(0, attempt.startedAtMs - attempt.requestedAtMs),
      rateLimitMs: Math.round(trace.calls.rateLimitMs),
      laneMs: Math.round(trace.laneMs),
      conflictMs: Math.round(trace.conflicts.reduce((sum, { waitedMs }) => sum + waitedMs, 0)),
      backoffMs: 0,
    },
    ...optional("generation", object?.metadata.generation),
    ...optional("observedGeneration", typeof observed === "number" ? observed : undefined),
    ...optional("versionBefore", object?.metadata.resourceVersion),
    ...optional("versionAfter", (after?.object ?? object)?.metadata.resourceVersion),
    outcome: outcome.kind,
    ...("afterMs" in outcome ? { afterMs: Math.round(outcome.afterMs) } : {}),
    ...("cause" in outcome ? { cause: outcome.cause.slice(0, 200) } : {}),
    ...optional("error", errorOf(outcome)),
    writes: landed.map(({ record }) => record),
    conflicts: trace.conflicts
      .filter((conflict) => !settled.has(conflict))
      .map((conflict) => ({
        ...conflictRecord(conflict),
        resource: resourceId(conflict.ref),
        ...optional("namespace", conflict.ref.namespace),
        name: conflict.ref.name,
        ...optional("subresource", conflict.subresource),
      })),
    ...(trace.runs.length === 0 ? {} : { runs: [...trace.runs] }),
    calls: { count: trace.calls.count, durationMs: Math.round(trace.calls.durationMs) },
    ...optional("eventLoopBlockedMs", eventLoopBlockedMs),
    ...(hints.length === 0 ? {} : { hints: [...hints] }),
  };
}

function writeRecord(write: WriteTrace, conflicts: readonly ConflictRecord[], controller: string) {
  const resource = resourceId(write.type);
  const settledConflicts = conflicts.filter(
    ({ ref, subresource }) =>
      write.verb === "patch" &&
      resourceId(ref) === resource &&
      ref.name === write.name.name &&
      ref.namespace === write.name.namespace &&
      subresource === write.subresource,
  );
  const fieldManager = `konverge/${controller}`;
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
    ...optional("namespace", write.name.namespace),
    name: write.name.name,
    fieldManager,
    ...optional("subresource", write.subresource),
    ...optional("fromVersion", write.fromVersion),
    ...optional(
      "toVersion",
      write.verb === "delete" ? undefined : write.object.metadata.resourceVersion,
    ),
    ...optional(
      "patch",
      write.patch === undefined ? undefined : redactPatch(resource, write.patch),
    ),
    conflicts: settledConflicts.map(conflictRecord),
    ...(fieldsTakenOver.length === 0 ? {} : { fieldsTakenOver }),
  };
  return { record, settledConflicts };
}

function conflictRecord({ readVersion, foundVersion, competingWriters, waitedMs }: ConflictRecord) {
  return {
    readVersion,
    ...optional("foundVersion", foundVersion),
    competingWriters: competingWriters
      .slice(0, 5)
      .map((winner) => ({ ...winner, paths: winner.paths.slice(0, 10) })),
    waitedMs: Math.round(waitedMs),
  };
}

/** Its text is safe already: the attempt has redacted it. */
function errorOf(outcome: Outcome): AttemptRecord["error"] {
  if (!("error" in outcome) || outcome.error === undefined) return undefined;
  const { error } = outcome;
  const ours = findCause(error, isKonvergeError);
  const code = ours?.code ?? error.name;
  const reason = isKubeApiError(ours) && ours.reason !== "" ? { reason: ours.reason } : {};
  return { code, ...reason, message: error.message.slice(0, 500) };
}

function conflictCount({ writes, conflicts }: AttemptRecord): number {
  return conflicts.length + writes.reduce((sum, write) => sum + write.conflicts.length, 0);
}

/** Drops patches, then the oldest writes, until the record fits. */
function fitRecord(record: AttemptRecord): string {
  let text = JSON.stringify(record);
  if (Buffer.byteLength(text) <= MAX_RECORD_BYTES) return text;
  let writes = record.writes.map(({ patch: _dropped, ...write }) => write);
  text = JSON.stringify({ ...record, writes });
  while (Buffer.byteLength(text) > MAX_RECORD_BYTES && writes.length > 0) {
    writes = writes.slice(Math.ceil(writes.length / 2));
    text = JSON.stringify({ ...record, writes, conflicts: record.conflicts.slice(0, 5) });
  }
  return text;
}

/** A member that is left out when there is nothing to say. */
function optional<Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { [K in Key]?: Value } {
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value };
}

/** How far watches had come is for the attempt, not for people. */
function toldOf(trigger: Trigger): Omit<Trigger, "seen"> {
  const { seen: _, ...told } = trigger;
  return told;
}
