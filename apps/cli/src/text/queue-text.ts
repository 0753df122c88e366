import type { KeyItem, OperatorActionList, PauseList, QueueList } from "@konverge/contracts";
import { NO_NAMESPACE, parseKey, shortName } from "@konverge/core";
import { age } from "./age.ts";
import { columns, type Cell } from "./columns.ts";
import { outcomeCell, toneCell } from "./tone.ts";

const NONE = "-";
const HEAD = [
  "CONTROLLER",
  "KIND",
  "OBJECTS",
  "WAITING",
  "RUNNING",
  "DELAYED",
  "DEAD",
  "WORKERS",
  "NOTE",
];

/** Formats the queues of controllers and workflows, a line each. */
export function queueRows({ items, workflows }: QueueList): string {
  const rows = items.map(
    ({ controller, kind, keys, waiting, active, delayed, deadLettered, ...rest }): Cell[] => {
      const { workers, pauses } = rest;
      const whole = pauses.find(({ scope }) => scope.kind === "controller");
      const note =
        whole !== undefined
          ? `paused by ${whole.by} ${age(whole.since)} ago: ${whole.reason}`
          : pauses.length > 0
            ? `${pauses.length === 1 ? "1 pause" : `${pauses.length} pauses`}, see konverge queue pauses`
            : workers === 0
              ? "no worker"
              : NONE;
      return [
        controller,
        kind,
        String(keys ?? NONE),
        String(waiting),
        String(active),
        String(delayed),
        (deadLettered ?? 0) > 0
          ? { text: String(deadLettered), style: "red" }
          : String(deadLettered ?? NONE),
        workers === 0 ? { text: "0", style: "red" } : String(workers),
        note,
      ];
    },
  );
  const runs = workflows.map(({ workflow, waiting, active, delayed, workers }): Cell[] => [
    `workflow.${workflow}`,
    "Run",
    NONE,
    String(waiting),
    String(active),
    String(delayed),
    NONE,
    workers === 0 ? { text: "0", style: "red" } : String(workers),
    workers === 0 ? "no worker" : NONE,
  ]);
  return columns([HEAD, ...rows, ...runs]);
}

/** Formats keys, a line each. The note has the reason why a key does not run. */
export function keyRows(items: readonly KeyItem[]): string {
  const rows = items.map(
    ({ key, phase, failures, lastOutcome, nextAt, paused, deadLetter }): Cell[] => {
      const pause =
        paused === undefined ? "" : `by ${paused.by} ${age(paused.since)} ago: ${paused.reason}`;
      const death =
        deadLetter === undefined
          ? ""
          : `${age(deadLetter.since)} ago: ${errorText(deadLetter.error)}`;
      return [
        ...placeOf(key),
        toneCell(phase),
        String(failures),
        outcomeCell(lastOutcome),
        age(nextAt),
        pause || death || NONE,
      ];
    },
  );
  return columns([
    ["CONTROLLER", "NAMESPACE", "NAME", "PHASE", "FAILURES", "LAST", "NEXT", "NOTE"],
    ...rows,
  ]);
}

/** Formats dead-lettered keys, a line each. */
export function deadRows(items: readonly KeyItem[]): string {
  const rows = items.map(({ key, failures, deadLetter }): Cell[] => [
    ...placeOf(key),
    age(deadLetter?.since),
    String(failures),
    errorText(deadLetter?.error),
  ]);
  return columns([["CONTROLLER", "NAMESPACE", "NAME", "AGE", "FAILURES", "ERROR"], ...rows]);
}

/** Formats pauses, a line each. */
export function pauseRows({ items }: PauseList): string {
  const rows = items.map(({ controller, scope, by, since, reason }) => [
    controller,
    scope.kind === "controller"
      ? "all"
      : scope.kind === "namespace"
        ? `namespace ${scope.namespace}`
        : nameOf(scope.key),
    by,
    age(since),
    reason,
  ]);
  return columns([["CONTROLLER", "SCOPE", "BY", "AGE", "REASON"], ...rows]);
}

/** Formats operator actions, a line each, newest first. */
export function actionRows({ items }: OperatorActionList): string {
  const rows = items.map(({ at, kind, scope, by, reason, count }) => [
    age(at),
    kind,
    count === undefined ? shortScope(scope) : `${shortScope(scope)} (${count})`,
    by,
    reason,
  ]);
  return columns([["AGE", "ACTION", "SCOPE", "BY", "REASON"], ...rows]);
}

function errorText(error: { readonly code: string; readonly message: string } | undefined): string {
  return error === undefined ? NONE : `${error.code}: ${error.message.replaceAll(/\s+/g, " ")}`;
}

function placeOf(key: string): [controller: string, namespace: string, name: string] {
  const { controller, namespace = NONE, name } = parseKey(key);
  return [controller, namespace, name];
}

/** Shortens the scope of an action: a controller, a namespace, a key or a request. */
function shortScope(scope: string): string {
  const parts = scope.split("/");
  return parts.length === 5
    ? parts
        .slice(3)
        .filter((part) => part !== NO_NAMESPACE)
        .join("/")
    : scope;
}

function nameOf(key: string): string {
  return shortName(parseKey(key));
}
