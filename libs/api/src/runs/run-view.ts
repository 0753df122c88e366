import { defined } from "@konverge/core";
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
    ...defined({ error, blockedReason, blockedError, key }),
    ...(run.blockedAtMs === undefined ? {} : { blockedAt: iso(run.blockedAtMs) }),
    ...(labels === undefined ? {} : { labels: { ...labels } }),
    ...(parent === undefined ? {} : { parent: formatRunId(parent, cluster) }),
    ...defined({ by, cancel, terminated }),
    ...(pause === undefined ? {} : { pause: pauseItem(pause) }),
    ...(retry === undefined
      ? {}
      : {
          retry: {
            ...retry,
            ...(retry.originalRun === undefined
              ? {}
              : { originalRun: formatRunId({ workflow, id: retry.originalRun }, cluster) }),
          },
        }),
    ...(scheduledAtMs === undefined ? {} : { scheduledAt: iso(scheduledAtMs) }),
    ...defined({ limits, round }),
    ...(roundStartedAtMs === undefined ? {} : { roundStartedAt: iso(roundStartedAtMs) }),
    createdAt: iso(createdAtMs),
    ...(startedAtMs === undefined ? {} : { startedAt: iso(startedAtMs) }),
    ...(endedAtMs === undefined ? {} : { endedAt: iso(endedAtMs) }),
    ...(warnings === undefined ? {} : { warnings: [...warnings] }),
    ...defined({ slotWait }),
    ...(waits === undefined
      ? {}
      : {
          waits: waits.map(({ step, kind, sinceMs, untilMs, message, position, child }) => ({
            step,
            kind,
            ...(sinceMs === undefined ? {} : { since: iso(sinceMs) }),
            ...(untilMs === undefined ? {} : { until: iso(untilMs) }),
            ...defined({ message, position }),
            ...(child === undefined ? {} : { child: formatRunId(child, cluster) }),
          })),
        }),
  };
}

function pauseItem({ atMs, ...pause }: RunPause): NonNullable<RunDetail["pause"]> {
  return { ...pause, at: iso(atMs) };
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
    return { step: name, attempts, ...known, heartbeat: { at: iso(atMs), ...beat } };
  });
  return {
    ...(items.length === 0 ? {} : { progress: items }),
    ...(beatAtMs === 0 ? {} : { heartbeatAt: iso(beatAtMs) }),
  };
}

function triesOf(
  tries: readonly FailedTry[] | undefined,
): Pick<RunDetail["steps"][number], "tries"> {
  if (tries === undefined) return {};
  return { tries: tries.map(({ atMs, ...failed }) => ({ at: iso(atMs), ...failed })) };
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
    ...defined({ input, result }),
    ...(published === undefined ? {} : { published: { ...published } }),
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
        ...(startedAtMs === undefined ? {} : { startedAt: iso(startedAtMs) }),
        ...defined({ workerLost }),
        at: iso(atMs),
        ...(untilMs === undefined ? {} : { until: iso(untilMs) }),
        ...defined({ attempts, skipped, by }),
        ...triesOf(tries),
        ...(child === undefined ? {} : { child: formatRunId(child, cluster) }),
        ...defined({ branch, value, error }),
      }),
    ),
    ...progressOf(run, progress),
    ...(mayLeaveUndos(run) ? { undosLeft: [...undosLeft(steps)] } : {}),
    ...(unconsumedSignals.length === 0
      ? {}
      : {
          unconsumedSignals: unconsumedSignals.map(({ atMs, ...signal }) => ({
            ...signal,
            at: iso(atMs),
          })),
        }),
    ...(refusedSignals.count === 0
      ? {}
      : {
          refusedSignals: {
            count: refusedSignals.count,
            last: refusedSignals.last.map(({ atMs, ...signal }) => ({ ...signal, at: iso(atMs) })),
          },
        }),
  };
}

export function logLine({ atMs, fields, ...line }: LogLine): RunLog["items"][number] {
  return { at: iso(atMs), ...line, ...(fields === undefined ? {} : { fields: { ...fields } }) };
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

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
