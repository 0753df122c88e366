import type { Run } from "@konverge/client";
import type { ActOnRunsResponse, RunDetail, RunLog } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns, fields, type Cell } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { toneCell } from "./tone.ts";

const NONE = "-";

/** Formats runs, a line each, newest first. */
export function runRows(runs: readonly Run[]): string {
  return columns([
    ["RUN", "STATUS", "AGE", "ENDED", "BY", "KEY", "NOTE"],
    ...runs.map((run): Cell[] => [
      run.id,
      toneCell(run.status),
      age(run.createdAt),
      run.endedAt === undefined ? NONE : `${age(run.endedAt)} ago`,
      run.by ?? NONE,
      run.key ?? NONE,
      noteOf(run),
    ]),
  ]);
}

/** Formats one run with its steps. */
export function runDetails(run: RunDetail): string {
  const { id, status, version, key, parent, by, retry, cancel, input, result, steps } = run;
  const rows: [string, string][] = [
    ["run", id],
    ["status", status],
    ["version", String(version)],
    ["created", `${run.createdAt} (${age(run.createdAt)})`],
  ];
  if (run.scheduledAt !== undefined) rows.push(["scheduled", run.scheduledAt]);
  if (run.round !== undefined) rows.push(["round", roundText(run)]);
  for (const [name, limit] of Object.entries(run.limits ?? {})) {
    rows.push(["raised limit", `${limit} ${name}`]);
  }
  const note = noteOf(run);
  if (note !== "") rows.push(["why", note]);
  for (const { step, position } of run.waits ?? []) {
    if (position !== undefined) rows.push(["called", `"${step}" ${position}`]);
  }
  if (run.blockedAt !== undefined) {
    rows.push(["blocked", `${run.blockedAt} (${age(run.blockedAt)})`]);
  }
  for (const { message } of run.warnings ?? []) rows.push(["warning", message]);
  if (key !== undefined) rows.push(["key", key]);
  if (run.labels !== undefined) rows.push(["labels", labelText(run.labels)]);
  if (by !== undefined) rows.push(["started by", by]);
  if (parent !== undefined) rows.push(["parent", parent]);
  if (retry !== undefined) {
    const what =
      retry.originalRun === undefined ? "from the failed step" : `of ${retry.originalRun}`;
    rows.push(["retry", `${what}, by ${retry.by ?? NONE}: ${retry.reason ?? "no reason given"}`]);
  }
  if (cancel !== undefined) {
    rows.push(["cancelled", `by ${cancel.by ?? "a run"}: ${cancel.reason ?? "no reason given"}`]);
  }
  const { pause, terminated, undosLeft = [] } = run;
  if (pause !== undefined) {
    const why = pause.reason ?? "no reason given";
    rows.push(["paused", `by ${pause.by ?? NONE} ${age(pause.at)} ago: ${why}`]);
  }
  if (terminated !== undefined) {
    const why = terminated.reason ?? "no reason given";
    rows.push(["terminated", `by ${terminated.by ?? NONE}: ${why}`]);
    rows.push(["not undone", undosLeft.length === 0 ? "no step" : undosLeft.join(", ")]);
  }
  for (const { name, by: sender, at } of run.unconsumedSignals ?? []) {
    rows.push(["unconsumed", `signal "${name}", sent by ${sender ?? NONE} ${age(at)} ago`]);
  }
  for (const step of run.progress ?? []) rows.push(["progress", progressText(step)]);
  for (const [name, value] of Object.entries(run.published ?? {})) {
    rows.push(["published", `${name} ${JSON.stringify(value)}`]);
  }
  const { count, last } = run.refusedSignals ?? { count: 0, last: [] };
  for (const { name, by: sender, at, message } of last) {
    const text = `signal "${name}", sent by ${sender ?? NONE} ${age(at)} ago: ${message}`;
    rows.push(["refused", text]);
  }
  if (count > last.length) rows.push(["refused", `and ${count - last.length} earlier signals`]);
  for (const frame of (run.error ?? run.blockedError)?.frames ?? []) rows.push(["", frame]);
  if (input !== undefined) rows.push(["input", JSON.stringify(input)]);
  if (result !== undefined) rows.push(["result", JSON.stringify(result)]);
  if (run.endedAt !== undefined) rows.push(["ended", `${run.endedAt} (${age(run.endedAt)})`]);
  const tables = [steps.length === 0 ? "" : stepRows(steps), tryRows(run)];
  return [fields(rows), ...tables.filter((table) => table !== "")].join("\n\n");
}

/** Formats the failed tries of steps, oldest first. */
function tryRows({ steps, progress = [] }: RunDetail): string {
  const all = [
    ...steps.map(({ name, tries = [] }) => ({ name, tries })),
    ...progress.map(({ step, tries = [] }) => ({ name: step, tries })),
  ];
  const rows = all.flatMap(({ name, tries }) =>
    tries.map(({ attempt, at, code, message }): Cell[] => [
      name,
      attempt === undefined ? NONE : String(attempt),
      age(at),
      `${code}: ${plain(message)}`,
    ]),
  );
  return rows.length === 0 ? "" : columns([["FAILED TRY OF", "TRY", "AGE", "ERROR"], ...rows]);
}

function roundText({ round, roundStartedAt = "" }: Run): string {
  return `${round}, since ${roundStartedAt} (${age(roundStartedAt)}); steps of earlier rounds are dropped`;
}

/** Formats the result of an action on all runs that match. */
export function bulkText(
  { changed, unchanged, failed, failures }: ActOnRunsResponse,
  done: string,
): string {
  const counts = [
    `${changed} ${done}`,
    ...(unchanged === 0 ? [] : [`${unchanged} unchanged`]),
    ...(failed === 0 ? [] : [`${failed} failed`]),
  ];
  const lines = failures.map(({ id, code, message }) => plain(`  ${id}: ${code}: ${message}`));
  return [counts.join(", "), ...lines].join("\n");
}

function labelText(labels: NonNullable<Run["labels"]>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

/** Formats the log of a run, a line each, oldest first. */
export function logRows(lines: RunLog["items"]): string {
  return columns([
    ["TIME", "LEVEL", "STEP", "MESSAGE"],
    ...lines.map(({ at, level, step, attempt = 1, message, fields: more }): Cell[] => [
      at,
      level,
      step === undefined ? NONE : attempt > 1 ? `${step} (try ${attempt})` : step,
      more === undefined ? message : `${message} ${JSON.stringify(more)}`,
    ]),
  ]);
}

/** Formats a recorded step in one line, with its time in UTC. */
export function stepLine(step: RunDetail["steps"][number]): string {
  const { name, kind, at, attempts = 1, by } = step;
  const notes = [attempts > 1 ? `${attempts} tries` : "", by === undefined ? "" : `by ${by}`];
  const note = notes.filter((each) => each !== "").join(", ");
  const end = `${plain(resultOf(step))}${note === "" ? "" : ` (${plain(note)})`}`;
  return `${at.slice(11, 19)}  ${kind} ${plain(name)}  ${end}`.trimEnd();
}

type Progress = NonNullable<RunDetail["progress"]>[number];

/** Formats an unfinished step in one line: its last heartbeat, and its failed attempts. */
function progressText({ step, attempts, maxAttempts, message, heartbeat }: Progress): string {
  const parts: string[] = [];
  if (heartbeat !== undefined) {
    const { progress, at } = heartbeat;
    const value = progress === undefined ? "" : `${JSON.stringify(progress)}, `;
    parts.push(`${value}heartbeat ${age(at)} ago`);
  }
  if (attempts > 0) {
    const count =
      maxAttempts === undefined
        ? `${attempts} failed ${attempts === 1 ? "try" : "tries"}`
        : `${attempts} of ${maxAttempts} tries failed`;
    parts.push(`${count}: ${message ?? NONE}`);
  }
  return plain(`"${step}" ${parts.join("; ")}`);
}

/** Formats the progress of a running step in one line, with its time in UTC. */
export function progressLine(
  step: string,
  { at, progress }: NonNullable<Progress["heartbeat"]>,
): string {
  return `${at.slice(11, 19)}  progress ${plain(step)}  ${plain(JSON.stringify(progress))}`;
}

/** Formats the status of a run in one line. */
export function statusLine(run: RunDetail): string {
  const result = run.result === undefined ? "" : JSON.stringify(run.result);
  const note = run.status === "done" ? result : noteOf(run);
  return plain(`${run.status}${note === "" ? "" : `: ${note}`}`);
}

function stepRows(steps: RunDetail["steps"]): string {
  return columns([
    ["STEP", "KIND", "RECORDED", "TRIES", "BY", "RESULT"],
    ...steps.map((step): Cell[] => [
      step.name,
      step.kind,
      age(step.at),
      step.attempts === undefined ? NONE : String(step.attempts),
      step.by ?? NONE,
      resultOf(step),
    ]),
  ]);
}

function resultOf({ value, error, until, skipped }: RunDetail["steps"][number]): string {
  if (skipped !== undefined) {
    return `skipped by ${plain(skipped.by ?? NONE)}: ${plain(skipped.reason ?? "no reason given")}`;
  }
  if (error !== undefined) return `${error.code}: ${plain(error.message)}`;
  return until === undefined ? (JSON.stringify(value) ?? "") : `until ${until}`;
}

/** Returns why a run failed or is blocked, or its waits. */
export function noteOf({ error, blockedReason, slotWait, waits = [] }: Run): string {
  if (error !== undefined) return `${error.code}: ${error.message}`;
  if (blockedReason !== undefined) return blockedReason;
  if (slotWait !== undefined) {
    const { group, ahead } = slotWait;
    const key = group === undefined ? "" : ` of "${group}"`;
    const place =
      ahead === undefined ? "" : ` (${ahead} ${ahead === 1 ? "run" : "runs"} before it)`;
    return `waits for a slot${key}${place}`;
  }
  const texts = waits.map(
    ({ step, kind, until, message }) =>
      `${kind === "wait" ? "" : `${kind} `}"${step}"${until === undefined ? "" : ` (${age(until)})`}${message === undefined ? "" : `: ${message}`}`,
  );
  return texts.length === 0 ? "" : `waits for ${texts.join(", ")}`;
}
