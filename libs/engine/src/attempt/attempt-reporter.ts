import {
  defined,
  divideConvergence,
  endedWell,
  handlerSucceeded,
  parseKey,
  type OutcomeKind,
  type TimeSpan,
} from "@konverge/core";
import type { AttemptClosed, AttemptEnd, AttemptLease, LostAttempt } from "@konverge/queue";
import type { AttemptRecord, Hint } from "@konverge/records";
import type { AttemptMetrics, AttemptSpan, Metrics, SloEvent } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";
import type { NotedEnd } from "./noted-end.ts";
import { buildRecord } from "./build-record.ts";
import { findHints } from "./find-hints.ts";
import type { AttemptRun } from "./run-attempt.ts";

/** The history of the controller's attempts. */
interface RecordHistory {
  /** Findings about a key beyond one attempt, such as a reconcile loop. */
  hintsOf(key: string): readonly Hint[];
  /** Receives each record whose attempt was not fenced. */
  note(attempt: AttemptLease, record: AttemptRecord, end: NotedEnd): void;
}

export interface AttemptReporterOptions {
  readonly controller: Controller;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly workerId: string;
  readonly history: RecordHistory | undefined;
  /** When the API server could not be used. */
  readonly outages: () => readonly TimeSpan[];
}

/** Largest record; the queue rejects larger ones. A record explains an attempt, and does not copy it. */
const MAX_RECORD_BYTES = 16_000;

/** Reports each attempt of a controller by its record, one log line and its counters (P11). */
export class AttemptReporter {
  readonly #options: AttemptReporterOptions;
  readonly #log: Log;
  /** Weak, because an end that Redis never accepted is never closed. */
  readonly #records = new WeakMap<AttemptLease, { record: AttemptRecord; bytes: number }>();

  constructor(options: AttemptReporterOptions) {
    this.#options = options;
    this.#log = options.log.child({ controller: options.controller.name });
  }

  /** Counts the start. Returns the handler's logger, with the fields of the key. */
  started(attempt: AttemptLease, traceId: string | undefined): Log {
    this.#options.metrics.attemptStarted(this.#options.controller.name, attempt);
    const { namespace, name } = attempt.key;
    const { id: key, epoch, attempt: number } = attempt;
    const fields = { key, namespace, name, epoch, attempt: number };
    return this.#log.child({ ...fields, ...defined({ traceId }) });
  }

  /** Called once, after the handler has ended. Returns the function that completes the record with the wait until the next attempt. */
  finished(
    attempt: AttemptLease,
    run: AttemptRun,
    span: AttemptSpan | undefined,
  ): (backoffMs: number) => string {
    const { controller, metrics, workerId, history } = this.#options;
    metrics.attemptEnded(attempt);
    const record = buildRecord(attempt, run, {
      controller: controller.name,
      worker: workerId,
      hints: [...findHints(run, attempt.key), ...(history?.hintsOf(attempt.id) ?? [])],
      traceId: span?.traceId,
    });
    span?.end({ outcome: run.outcome.kind, error: record.error });
    return (backoffMs) => {
      const complete = { ...record, waits: { ...record.waits, backoffMs } };
      const text = fitRecord(complete);
      this.#records.set(attempt, { record: complete, bytes: Buffer.byteLength(text) });
      return text;
    };
  }

  /** Called for an attempt that was lost with its worker. */
  lost({ id: key, consecutive }: LostAttempt): void {
    this.#options.metrics.attemptLost(this.#options.controller.name);
    const { namespace, name } = parseKey(key);
    this.#log.warn({ key, namespace, name, consecutive }, "attempt lost");
  }

  /** Called after the queue has stored the end, or rejected it. */
  closed(attempt: AttemptLease, { outcome: { kind } }: AttemptEnd, closed: AttemptClosed): void {
    const kept = this.#records.get(attempt);
    if (kept === undefined) return;
    const { record, bytes } = kept;
    const convergence = this.#convergenceOf(attempt, record, kind);
    const slo = this.#sloEventOf(attempt, record, kind);
    if (!closed.fenced) this.#options.history?.note(attempt, record, { bytes, convergence, slo });
    this.#count(record, kind, { ...closed, convergence, slo });
    this.#logEnd(attempt, { ...record, outcome: kind }, closed);
  }

  #convergenceOf(
    { failures, conflicts, startedAtMs, pauses }: AttemptLease,
    record: AttemptRecord,
    outcome: OutcomeKind,
  ): AttemptMetrics["convergence"] {
    if (!handlerSucceeded(outcome)) return undefined;
    const outages = this.#options.outages();
    return divideConvergence({ ...record, failures, conflicts, startedAtMs, pauses, outages });
  }

  /** A change ends with success, or when it fails permanently. Others are retried. */
  #sloEventOf(
    { isResync }: AttemptLease,
    { waits, durationMs }: AttemptRecord,
    outcome: OutcomeKind,
  ): SloEvent | undefined {
    const { slo } = this.#options.controller;
    if (slo === undefined || isResync) return undefined;
    if (outcome === "terminal") return "bad";
    if (!handlerSucceeded(outcome)) return undefined;
    return waits.queueMs + durationMs <= slo.thresholdMs ? "good" : "bad";
  }

  #count(
    record: AttemptRecord,
    outcome: OutcomeKind,
    {
      fenced,
      retryAfterMs,
      ...measured
    }: AttemptClosed & Pick<AttemptMetrics, "convergence" | "slo">,
  ): void {
    const { durationMs, waits, writes, calls, error } = record;
    this.#options.metrics.attemptFinished({
      controller: this.#options.controller.name,
      outcome,
      durationMs,
      queueMs: waits.queueMs,
      rateLimitMs: waits.rateLimitMs,
      laneMs: waits.laneMs,
      ...measured,
      conflicts: conflictCount(record),
      writes: writes.length,
      apiCalls: calls.count,
      retried: retryAfterMs !== undefined && outcome !== "requeueAfter",
      timedOut: error?.code === "timed_out",
      fenced,
    });
  }

  #logEnd(attempt: AttemptLease, record: AttemptRecord, { fenced }: AttemptClosed): void {
    const { outcome, writes, calls, waits, durationMs, error, traceId } = record;
    const conflicts = conflictCount(record);
    const fields = {
      key: attempt.id,
      epoch: attempt.epoch,
      attempt: attempt.attempt,
      ...defined({ traceId }),
      trigger: attempt.triggers.at(-1)?.kind ?? "retry",
      outcome,
      conflicts,
      writes: writes.length,
      calls: calls.count,
      waitMs: waits,
      durationMs,
      ...(fenced ? { fenced } : {}),
      ...defined({ err: error && loggedError(error) }),
    };
    if (error !== undefined && outcome !== "conflict") {
      this.#log.warn(fields, "reconcile failed");
      return;
    }
    const changedNothing = writes.length === 0 && conflicts === 0 && !fenced;
    if (changedNothing && endedWell(outcome)) this.#log.debug(fields, "reconciled");
    else this.#log.info(fields, "reconciled");
  }
}

/** The error in the form of pino: its frames as a stack. */
function loggedError(error: NonNullable<AttemptRecord["error"]>): object {
  const { frames = [] } = error;
  const head = `${error.code}: ${error.message}`;
  return {
    type: error.code,
    ...error,
    stack: [head, ...frames.map((line) => `    ${line}`)].join("\n"),
  };
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
  if (Buffer.byteLength(text) <= MAX_RECORD_BYTES) return text;
  const { log: _dropped, ...rest } = record;
  return JSON.stringify({ ...rest, writes, conflicts: [] });
}
