import type { KeyList, OrderList, PauseList } from "@konverge/contracts";
import { columns } from "./columns.ts";

const NONE = "-";

/** A line per key, for people; the note says why it does not run. */
export function keyRows({ items, next }: KeyList): string {
  if (items.length === 0 && next === undefined) return "no such key";
  const rows = items.map(({ key, phase, failures, lastOutcome, nextAt, paused, dead }) => {
    const pause =
      paused === undefined ? "" : `by ${paused.by} since ${paused.since}: ${paused.reason}`;
    const death = dead === undefined ? "" : `since ${dead.since}: ${errorText(dead.error)}`;
    return [
      key,
      phase,
      String(failures),
      lastOutcome ?? NONE,
      nextAt ?? NONE,
      pause || death || NONE,
    ];
  });
  const table = columns([["KEY", "PHASE", "FAILURES", "LAST", "NEXT", "NOTE"], ...rows]);
  return next === undefined ? table : `${table}\nmore: --cursor '${next}'`;
}

/** A line per dead letter, for people. */
export function deadRows({ items, next }: KeyList): string {
  if (items.length === 0 && next === undefined) return "no dead letter";
  const rows = items.map(({ key, failures, dead }) => [
    key,
    dead?.since ?? NONE,
    String(failures),
    errorText(dead?.error),
  ]);
  const table = columns([["KEY", "SINCE", "FAILURES", "ERROR"], ...rows]);
  return next === undefined ? table : `${table}\nmore: --cursor '${next}'`;
}

/** A line per pause, for people. */
export function pauseRows({ items }: PauseList): string {
  if (items.length === 0) return "nothing is paused";
  const rows = items.map(({ controller, scope, by, since, reason }) => [
    controller,
    scope.kind === "controller"
      ? "all"
      : scope.kind === "namespace"
        ? `namespace ${scope.namespace}`
        : scope.key,
    by,
    since,
    reason,
  ]);
  return columns([["CONTROLLER", "SCOPE", "BY", "SINCE", "REASON"], ...rows]);
}

/** A line per order, newest first, for people. */
export function orderRows({ items }: OrderList): string {
  if (items.length === 0) return "nobody has ordered anything";
  const rows = items.map(({ at, kind, scope, by, reason, count }) => [
    at,
    kind,
    count === undefined ? scope : `${scope} (${count})`,
    by,
    reason,
  ]);
  return columns([["AT", "ORDER", "SCOPE", "BY", "REASON"], ...rows]);
}

function errorText(error: { readonly code: string; readonly message: string } | undefined): string {
  return error === undefined ? NONE : `${error.code}: ${error.message.replaceAll(/\s+/g, " ")}`;
}
