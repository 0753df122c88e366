import { age } from "./age.ts";
import type { Blame } from "./blame-fields.ts";
import { columns, type Cell } from "./columns.ts";

/** Formats field owners, a line each. */
export function blameRows(items: readonly Blame[]): string {
  return columns([
    ["FIELD", "MANAGER", "OPERATION", "AGE", "ATTEMPT"],
    ...items.map(({ path, manager, operation, subresource, at, attempt }): Cell[] => [
      path,
      manager,
      subresource === undefined ? operation : `${operation} ${subresource}`,
      age(at),
      attempt === undefined ? "-" : String(attempt),
    ]),
  ]);
}
