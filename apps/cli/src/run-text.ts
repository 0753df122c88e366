import type { Run } from "@konverge/client";
import type { RunDetail } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns, fields, type Cell } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { toneCell } from "./tone.ts";

const NONE = "-";

/** A line per run, newest first. */
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

/** How one run stands, and its steps. */
export function runDetails(run: RunDetail): string {
  const { id, status, version, key, parent, by, cancel, input, result, steps } = run;
  const rows: [string, string][] = [
    ["run", id],
    ["status", status],
    ["version", String(version)],
    ["created", `${run.createdAt} (${age(run.createdAt)})`],
  ];
  const note = noteOf(run);
  if (note !== "") rows.push(["why", note]);
  if (key !== undefined) rows.push(["key", key]);
  if (by !== undefined) rows.push(["started by", by]);
  if (parent !== undefined) rows.push(["parent", parent]);
  if (cancel !== undefined) {
    rows.push(["cancelled", `by ${cancel.by ?? "a run"}: ${cancel.reason ?? "no reason given"}`]);
  }
  if (input !== undefined) rows.push(["input", JSON.stringify(input)]);
  if (result !== undefined) rows.push(["result", JSON.stringify(result)]);
  if (run.endedAt !== undefined) rows.push(["ended", `${run.endedAt} (${age(run.endedAt)})`]);
  if (steps.length === 0) return fields(rows);
  return `${fields(rows)}\n\n${stepRows(steps)}`;
}

function stepRows(steps: RunDetail["steps"]): string {
  return columns([
    ["STEP", "KIND", "RECORDED", "TRIES", "BY", "RESULT"],
    ...steps.map(({ name, kind, at, attempts, by, value, error, until }): Cell[] => [
      name,
      kind,
      age(at),
      attempts === undefined ? NONE : String(attempts),
      by ?? NONE,
      error !== undefined
        ? `${error.code}: ${plain(error.message)}`
        : until !== undefined
          ? `until ${until}`
          : (JSON.stringify(value) ?? ""),
    ]),
  ]);
}

/** Why it failed, is stuck, or what it waits for. */
function noteOf({ error, reason, waits = [] }: Run): string {
  if (error !== undefined) return `${error.code}: ${error.message}`;
  if (reason !== undefined) return reason;
  const told = waits.map(
    ({ step, kind, until, message }) =>
      `${kind} "${step}"${until === undefined ? "" : ` (${age(until)})`}${message === undefined ? "" : `: ${message}`}`,
  );
  return told.length === 0 ? "" : `waits for ${told.join(", ")}`;
}
