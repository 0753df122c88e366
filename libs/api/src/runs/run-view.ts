import { defined, isoTime } from "@konverge/core";
import type { RunDetail, RunList, RunLog } from "@konverge/contracts";
import {
  formatRunId,
  type FailedTry,
  type LogLine,
  type RefusedSignals,
  undosLeft,
  type RunCursor,
  type JournalView,
  type RunPause,
  type RunSummary,
  type RunView,
  type UnconsumedSignal,
} from "@konverge/workflow";

/** Returns a run in the form of the API: IDs with workflow and cluster, times in ISO 8601. */
export function runItem(run: RunSummary, cluster: string): RunList["items"][number] {
  const { workflow, version, status, error, blockedReason, key, parent, by, cancel, retry } = run;
  const { terminated, scheduledAtMs, createdAtMs, startedAtMs, endedAtMs } = run;
  const { warnings, waits, labels, blockedError, pause, round, roundStartedAtMs, limits } = run;
  const { slotWait } = run;
  return {
    id: formatRunId(run, cluster),
    workflow,
    cluster,
    version,
    status,
    ...defined({
      error,
      blockedReason,
      blockedError,
      key,
      blockedAt: isoTime(run.blockedAtMs),
      labels: labels && { ...labels },
      parent: parent && formatRunId(parent, cluster),
      by,
      cancel,
      terminated,
      pause: pause && pauseItem(pause),
      retry: retry && retryItem(retry, workflow, cluster),
      scheduledAt: isoTime(scheduledAtMs),
      limits,
      round,
      roundStartedAt: isoTime(roundStartedAtMs),
    }),
    createdAt: isoTime(createdAtMs),
    ...defined({
      startedAt: isoTime(startedAtMs),
      endedAt: isoTime(endedAtMs),
      warnings: warnings && [...warnings],
      slotWait,
      waits: waits?.map(({ step, kind, sinceMs, untilMs, message, position, child }) => ({
        step,
        kind,
        ...defined({
          since: isoTime(sinceMs),
          until: isoTime(untilMs),
          message,
          position,
          child: child && formatRunId(child, cluster),
        }),
      })),
    }),
  };
}

function pauseItem({ atMs, ...pause }: RunPause): NonNullable<RunDetail["pause"]> {
  return { ...pause, at: isoTime(atMs) };
}

function retryItem(
  { originalRun: id, ...retry }: NonNullable<RunSummary["retry"]>,
  workflow: string,
  cluster: string,
): NonNullable<RunDetail["retry"]> {
  const originalRun = id && formatRunId({ workflow, id }, cluster);
  return { ...retry, ...defined({ originalRun }) };
}

function progressOf(
  run: RunView,
  progress: JournalView["progress"],
): Pick<RunDetail, "progress" | "heartbeatAt"> {
  // The journal is read after the run, and may have a later one.
  const beats = progress.map(({ heartbeat }) => heartbeat?.atMs ?? 0);
  const beatAtMs = Math.max(run.beatAtMs ?? 0, ...beats);
  const begun = progress.filter(
    ({ attempts, heartbeat }) => attempts > 0 || heartbeat !== undefined,
  );
  const items = begun.map(({ name, attempts, maxAttempts, message, tries, heartbeat }) => {
    const known = { ...defined({ maxAttempts, message }), ...triesOf(tries) };
    if (heartbeat === undefined) return { step: name, attempts, ...known };
    const { atMs, ...beat } = heartbeat;
    return { step: name, attempts, ...known, heartbeat: { at: isoTime(atMs), ...beat } };
  });
  return {
    ...(items.length === 0 ? {} : { progress: items }),
    ...(beatAtMs === 0 ? {} : { heartbeatAt: isoTime(beatAtMs) }),
  };
}

function triesOf(
  tries: readonly FailedTry[] | undefined,
): Pick<RunDetail["steps"][number], "tries"> {
  if (tries === undefined) return {};
  return { tries: tries.map(({ atMs, ...failed }) => ({ at: isoTime(atMs), ...failed })) };
}

function mayLeaveUndos({ status, terminated }: RunView): boolean {
  return status === "blocked" || status === "compensating" || terminated !== undefined;
}

export function runDetail(
  run: RunView,
  cluster: string,
  {
    steps,
    progress,
    unconsumedSignals,
    refusedSignals,
  }: JournalView & {
    readonly unconsumedSignals: readonly UnconsumedSignal[];
    readonly refusedSignals: RefusedSignals;
  },
): RunDetail {
  const { input, result, published } = run;
  return {
    ...runItem(run, cluster),
    ...defined({ input, result, published: published && { ...published } }),
    steps: steps.map(
      ({
        name,
        kind,
        startedAtMs,
        workerLost,
        atMs = 0,
        untilMs,
        attempts,
        tries,
        skipped,
        by,
        child,
        branch,
        value,
        error,
      }) => ({
        name,
        kind,
        at: isoTime(atMs),
        ...defined({
          startedAt: isoTime(startedAtMs),
          workerLost,
          until: isoTime(untilMs),
          attempts,
          skipped,
          by,
          child: child && formatRunId(child, cluster),
          branch,
          value,
          error,
        }),
        ...triesOf(tries),
      }),
    ),
    ...progressOf(run, progress),
    ...(mayLeaveUndos(run) ? { undosLeft: [...undosLeft(steps)] } : {}),
    ...(unconsumedSignals.length === 0
      ? {}
      : {
          unconsumedSignals: unconsumedSignals.map(({ atMs, ...signal }) => ({
            ...signal,
            at: isoTime(atMs),
          })),
        }),
    ...(refusedSignals.count === 0
      ? {}
      : {
          refusedSignals: {
            count: refusedSignals.count,
            last: refusedSignals.last.map(({ atMs, ...signal }) => ({
              ...signal,
              at: isoTime(atMs),
            })),
          },
        }),
  };
}

export function logLine({ atMs, fields, ...line }: LogLine): RunLog["items"][number] {
  return { at: isoTime(atMs), ...line, ...defined({ fields: fields && { ...fields } }) };
}

/** Formats the last run of a page as `<created>/<workflow>/<id>`. */
export function formatCursor({ createdAtMs, workflow, id }: RunCursor): string {
  return `${createdAtMs}/${workflow}/${id}`;
}

/** Parses a cursor that the schema has validated. */
export function parseCursor(text: string): RunCursor {
  const [createdAt = "", workflow = "", ...id] = text.split("/");
  return { createdAtMs: Number(createdAt), workflow, id: id.join("/") };
}
