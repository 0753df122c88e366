import type { AttemptRecord } from "@konverge/records";
import type { ObjectHistory, ObjectLog } from "@konverge/contracts";
import { age, span } from "./age.ts";
import { columns, fields, type Cell } from "./columns.ts";
import { changesOf } from "./patch-changes.ts";
import { plain } from "./plain-text.ts";
import { outcomeCell } from "./tone.ts";

type Write = AttemptRecord["writes"][number];
type Conflict = AttemptRecord["conflicts"][number] | Write["conflicts"][number];
const NONE = "-";

/** Formats the state of a key. */
export function keyDetails(history: ObjectHistory): string {
  const { key, phase, failures, conflicts, lastOutcome, nextAt, paused, deadLetter, attempts } =
    history;
  const rows: [string, string][] = [
    ["key", key],
    ["phase", phase],
    ["last outcome", lastOutcome ?? NONE],
    ["failures", `${failures} consecutive`],
    ["conflicts", `${conflicts} consecutive`],
  ];
  if (nextAt !== undefined) rows.push(["next start", `${nextAt} (${age(nextAt)})`]);
  if (paused !== undefined) {
    rows.push(["paused", `by ${paused.by} since ${paused.since}: ${paused.reason}`]);
  }
  if (deadLetter !== undefined) {
    const error =
      deadLetter.error === undefined
        ? ""
        : `: ${deadLetter.error.code}: ${deadLetter.error.message}`;
    rows.push(["dead-lettered", `since ${deadLetter.since}${error}`]);
  }
  const [last] = attempts;
  if (last !== undefined) {
    rows.push(["last attempt", `${last.outcome} at ${last.finishedAt} (${age(last.finishedAt)})`]);
    if (last.error !== undefined && deadLetter === undefined) {
      rows.push(["error", `${last.error.code}: ${last.error.message}`]);
    }
    for (const { code, message } of last.hints ?? []) rows.push(["hint", `${code}: ${message}`]);
  }
  return fields(rows);
}

/** Formats the attempts of one object, a line each, newest first. */
export function historyRows(attempts: readonly AttemptRecord[]): string {
  return columns([
    [
      "ATTEMPT",
      "STARTED",
      "TRIGGER",
      "OUTCOME",
      "WAITED",
      "DURATION",
      "WRITES",
      "CONFLICTS",
      "NOTE",
    ],
    ...attempts.map((attempt): Cell[] => [
      numberOf(attempt),
      age(attempt.startedAt),
      [...new Set(attempt.triggers.map(({ kind }) => kind))].join(",") || NONE,
      outcomeCell(attempt.outcome),
      span(waitedMs(attempt)),
      span(attempt.durationMs),
      String(attempt.writes.length),
      String(conflictsOf(attempt).length),
      noteOf(attempt),
    ]),
  ]);
}

type LogLine = NonNullable<AttemptRecord["log"]>[number];

/** Formats log lines of attempts, oldest first. */
export function attemptLogRows(lines: ObjectLog["items"]): string {
  return columns([
    ["TIME", "ATTEMPT", "LEVEL", "MESSAGE"],
    ...lines.map((line): Cell[] => [line.at, String(line.attempt), line.level, logText(line)]),
  ]);
}

/** Formats one log line. */
export function attemptLogLine(line: ObjectLog["items"][number]): string {
  return plain(`${line.at}  ${line.attempt}  ${line.level}  ${logText(line)}`);
}

function logText({ message, fields: more }: Pick<LogLine, "message" | "fields">): string {
  return more === undefined ? message : `${message} ${JSON.stringify(more)}`;
}

/** Formats one attempt in detail. */
export function attemptDetails(attempt: AttemptRecord): string {
  const { waits, triggers, error, cause, hints = [], calls } = attempt;
  const rows: [string, string][] = [
    ["attempt", attempt.id],
    ["outcome", [attempt.outcome, cause].filter((part) => part !== undefined).join(": ")],
    ["requested", attempt.requestedAt],
    [
      "started",
      `${attempt.startedAt} (${age(attempt.startedAt)}), took ${span(attempt.durationMs)}`,
    ],
    [
      "waited",
      `${span(waits.queueMs)} in the queue, ${span(waits.rateLimitMs)} for tokens, ${span(waits.laneMs)} for the object lane, ${span(waits.conflictMs)} after conflicts`,
    ],
    ["worker", attempt.worker],
    ["API calls", `${calls.count}, ${span(calls.durationMs)}`],
  ];
  for (const { id, created } of attempt.runs ?? []) {
    rows.push([created ? "started" : "found", `run ${id}`]);
  }
  if (error !== undefined) rows.push(["error", `${error.code}: ${error.message}`]);
  for (const frame of error?.frames ?? []) rows.push(["", frame]);
  if (attempt.traceId !== undefined) rows.push(["trace", attempt.traceId]);
  const lines = [fields(rows)];
  for (const { kind, by, reason } of triggers) {
    const who = by === undefined ? "" : ` by ${by}`;
    lines.push(plain(`trigger: ${kind}${who}${reason === undefined ? "" : `: ${reason}`}`));
  }
  for (const write of attempt.writes) lines.push(writeText(write));
  for (const conflict of attempt.conflicts) {
    lines.push(plain(`conflict: ${conflict.resource} ${conflict.name}: ${conflictText(conflict)}`));
  }
  for (const { code, message } of hints) lines.push(plain(`hint: ${code}: ${message}`));
  const { log = [], logOmitted } = attempt;
  if (logOmitted !== undefined) lines.push(`log: ${logOmitted} earlier lines omitted`);
  for (const line of log) lines.push(plain(`log: ${line.at} ${line.level} ${logText(line)}`));
  return lines.join("\n");
}

/** Formats one write with the conflicts before it and its changes. */
export function writeText(write: Write): string {
  const { verb, resource, name, subresource, fromVersion, toVersion = NONE, cluster } = write;
  const where = cluster === undefined ? "" : ` in cluster ${cluster}`;
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  return [
    `${verb} ${what} ${name}${where}, version ${fromVersion === undefined ? "" : `${fromVersion} -> `}${toVersion}`,
    ...write.conflicts.map((conflict) => `  conflict: ${conflictText(conflict)}`),
    ...changesOf(write.patch).map(({ path, value }) =>
      value === null ? `  - ${path}` : `  + ${path} = ${JSON.stringify(value)}`,
    ),
  ]
    .map(plain)
    .join("\n");
}

export function numberOf({ epoch, attempt }: AttemptRecord): string {
  return String(epoch ?? attempt);
}

function conflictText({
  readVersion,
  foundVersion = "?",
  competingWriters,
  waitedMs: ms,
}: Conflict): string {
  const writers = competingWriters.map(
    ({ manager, paths }) => `${manager} (${paths.join(", ") || "?"})`,
  );
  const by = writers.length === 0 ? "an unknown writer" : writers.join(" and ");
  return `read ${readVersion}, found ${foundVersion}, written by ${by}; waited ${span(ms)}`;
}

function conflictsOf({ conflicts, writes }: AttemptRecord): readonly Conflict[] {
  return [...conflicts, ...writes.flatMap((write) => write.conflicts)];
}

function waitedMs({ waits }: AttemptRecord): number {
  return waits.queueMs + waits.rateLimitMs + waits.laneMs + waits.conflictMs;
}

function noteOf(attempt: AttemptRecord): string {
  const { error, cause, hints = [], triggers } = attempt;
  const managers = new Set(
    conflictsOf(attempt).flatMap(({ competingWriters }) =>
      competingWriters.map(({ manager }) => manager),
    ),
  );
  const reason = triggers.find((trigger) => trigger.reason !== undefined)?.reason;
  const parts = [
    error === undefined ? undefined : `${error.code}: ${error.message}`,
    cause,
    managers.size === 0 ? undefined : `conflict with ${[...managers].join(", ")}`,
    ...hints.map(({ code }) => code),
    reason === undefined ? undefined : `"${reason}"`,
  ];
  return parts.filter((part) => part !== undefined).join("; ") || NONE;
}
