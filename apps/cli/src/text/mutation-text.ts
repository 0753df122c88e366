import type { MutationDetail, MutationKindList } from "@konverge/contracts";
import { ERRORS } from "@konverge/core";
import { age } from "./age.ts";
import { columns, type Cell } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { toneCell } from "./tone.ts";

/** Formats mutations, a line each. */
export function mutationRows(items: readonly MutationDetail[]): string {
  return columns([
    ["ID", "STATE", "KIND", "OBJECT", "CHANGES", "BY", "AGE"],
    ...items.map((item): Cell[] => [
      item.id,
      toneCell(item.state),
      item.kind,
      item.namespace === undefined ? item.name : `${item.namespace}/${item.name}`,
      plain(item.changes.map(changeText).join(", ")),
      plain(item.by ?? "-"),
      age(item.createdAt),
    ]),
  ]);
}

/** Returns why a mutation was not applied, for stderr. */
export function mutationNotes({ id, error }: MutationDetail): string[] {
  return error === undefined ? [] : [`${id}: ${error.code}: ${error.message}`];
}

/** Returns the exit code for the state of a mutation. */
export function mutationExitCode({ state }: MutationDetail): number {
  switch (state) {
    case "applied":
    case "unchanged":
      return 0;
    case "not_found":
      return ERRORS.not_found.exitCode;
    case "precondition_failed":
    case "replaced":
      return ERRORS.object_replaced.exitCode;
    case "waiting":
    case "applying":
      return ERRORS.wait_timeout.exitCode;
    case "rejected":
    case "expired":
    case "cancelled":
      return 1;
  }
}

export function kindRows(items: MutationKindList["items"]): string {
  return columns([
    ["KIND", "API VERSION", "SCOPE", "ROLE", "PATHS"],
    ...items.map(({ kind, apiVersion, scope, role, paths }) => [
      kind,
      apiVersion,
      scope,
      role,
      paths?.join(", ") ?? "all",
    ]),
  ]);
}

function changeText(change: MutationDetail["changes"][number]): string {
  const { kind, path, by } = change as { kind: string; path?: unknown; by?: unknown };
  const where = typeof path === "string" ? ` ${path}` : "";
  return `${kind}${where}${typeof by === "number" ? ` ${by}` : ""}`;
}
