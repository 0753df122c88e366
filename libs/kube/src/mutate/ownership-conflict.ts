import { defined, findCause, KonvergeError } from "@konverge/core";
import type { CompetingWriter } from "../contract/call-record.ts";
import { isKubeApiError } from "../errors/kube-api-error.ts";
import { isFieldManagerConflict } from "../errors/error-predicates.ts";

/** The server's text for each field: `conflict with "hpa" with subresource "scale" using apps/v1`. */
const OWNER = /^conflict with "((?:[^"\\]|\\.)*)"(?: with subresource "([^"]*)")?/;

/** Returns the owners of the fields that caused a conflict of server-side apply; empty for any other error. */
export function findOwners(error: unknown): CompetingWriter[] {
  if (!isFieldManagerConflict(error)) return [];
  const owners = new Map<string, { owner: Omit<CompetingWriter, "paths">; paths: string[] }>();
  for (const { type, message, field } of findCause(error, isKubeApiError)?.causes ?? []) {
    const found = type === "FieldManagerConflict" ? OWNER.exec(message) : null;
    if (found === null) continue;
    const [, manager = "", subresource] = found;
    const known = owners.get(`${manager}\n${subresource}`);
    const { paths, owner } = known ?? {
      paths: [],
      // The server does not report the operation that made it the owner.
      owner: { manager, operation: "", ...defined({ subresource }) },
    };
    paths.push(field.replace(/^\./, ""));
    owners.set(`${manager}\n${subresource}`, { owner, paths });
  }
  return [...owners.values()].map(({ owner, paths }) => ({ ...owner, paths }));
}

/** Returns the error for an apply that other managers' ownership of fields rejected: with the fields, their owners and the fix. */
export function fieldConflict(error: unknown, label: string): KonvergeError {
  const owners = findOwners(error).map(
    ({ manager, paths }) => `"${manager}" owns ${paths.join(", ")}`,
  );
  const ownership = owners.length === 0 ? "other managers own the fields" : owners.join("; ");
  return new KonvergeError(
    "field_conflict",
    `${label} was not applied: ${ownership}; omit these fields, or take them over with force: true`,
    { cause: error },
  );
}
