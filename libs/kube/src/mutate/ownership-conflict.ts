import { defined, findCause } from "@konverge/core";
import type { CompetingWriter } from "../contract/call-record.ts";
import { isFieldManagerConflict, isKubeApiError } from "../errors/kube-api-error.ts";

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
