import type { AttemptSummary, ReconcileState } from "@konverge/contracts";
import { parseKey, shortName } from "@konverge/core";
import { age, span } from "./age.ts";
import { columns, type Cell } from "./columns.ts";
import { outcomeCell } from "./tone.ts";

const NONE = "-";

/** Formats requests, a line each. */
export function stateRows(states: readonly ReconcileState[]): string {
  return columns([
    ["PHASE", "OUTCOME", "ATTEMPTS", "FINISHED", "CONTROLLER", "OBJECT"],
    ...states.map(({ key, phase, outcome, attempts, finishedAt }): Cell[] => {
      const { controller, namespace, name } = parseKey(key);
      return [
        phase,
        outcomeCell(outcome),
        String(attempts),
        finishedAt === undefined ? NONE : `${age(finishedAt)} ago`,
        controller,
        shortName({ namespace, name }),
      ];
    }),
  ]);
}

/** Returns why a request waits or failed, a line each, for stderr. */
export function stateNotes({ id, outcome, error, paused }: ReconcileState): string[] {
  const notes: string[] = [];
  if (outcome === "gone") notes.push(`${id}: the object does not exist`);
  if (error !== undefined) notes.push(`${id}: ${error.code}: ${error.message}`);
  if (paused !== undefined) {
    notes.push(`${id}: paused by ${paused.by} since ${paused.since}: ${paused.reason}`);
  }
  return notes;
}

/** Returns the code and message of a failure in one line. */
export function attemptError({ errorCode, errorMessage }: AttemptSummary): string | undefined {
  return errorCode === undefined || errorMessage === undefined
    ? errorCode
    : `${errorCode}: ${errorMessage}`;
}

/** Formats attempts of many objects, a line each, newest first. */
export function attemptRows(items: readonly AttemptSummary[]): string {
  return columns([
    [
      "STARTED",
      "CONTROLLER",
      "OBJECT",
      "OUTCOME",
      "DURATION",
      "CALLS",
      "WRITES",
      "CONFLICTS",
      "NOTE",
    ],
    ...items.map((item): Cell[] => {
      const { controller, namespace, name, outcome, startedAt, durationMs, calls, writes } = item;
      const { conflicts, managers, hints } = item;
      const note = [
        attemptError(item),
        managers.length === 0 ? undefined : `conflict with ${managers.join(", ")}`,
        ...hints,
      ];
      return [
        age(startedAt),
        controller,
        shortName({ namespace, name }),
        outcomeCell(outcome),
        span(durationMs),
        String(calls),
        String(writes),
        String(conflicts),
        note.filter((part) => part !== undefined).join("; "),
      ];
    }),
  ]);
}
