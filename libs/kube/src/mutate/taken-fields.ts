import { isJsonObject, type ApiObject, type JsonObject } from "@konverge/core";
import {
  changedPaths,
  formatFieldPath,
  memberPaths,
  overlaps,
  ownedPaths,
} from "./managed-fields.ts";

/** Enough to show the contended fields. */
const MAX_TAKEN = 10;

/** Each is compared with every field that others own; a larger write is not contention about a field. */
const MAX_CHANGED = 50;

/** A field that a write took from another manager. */
export interface TakenField {
  readonly manager: string;
  /** For example `spec.replicas`. */
  readonly path: string;
}

export interface TakenFieldsOptions {
  readonly manager: string;
  readonly sensitive: boolean;
  /**
   * The merge patch that was written. Other changes belong to other writers, between read and write or in the same
   * write.
   */
  readonly patch: JsonObject;
}

/**
 * Returns the fields whose value `manager` changed although another manager owned them. A shared field counts as owned
 * by the other.
 */
export function findTakenFields(
  before: ApiObject,
  after: ApiObject,
  { manager, sensitive, patch }: TakenFieldsOptions,
): TakenField[] {
  const others = (before.metadata.managedFields ?? []).filter(
    (entry) => entry.manager !== undefined && entry.manager !== manager,
  );
  if (others.length === 0) return [];
  const written = memberPaths(patch);
  const changed = changedPaths(content(before), content(after))
    .filter((path) => written.some((own) => overlaps(own, path)))
    .slice(0, MAX_CHANGED);
  if (changed.length === 0) return [];
  const taken = new Map<string, TakenField>();
  for (const entry of others) {
    for (const owned of ownedPaths(entry.fieldsV1)) {
      if (taken.size >= MAX_TAKEN) return [...taken.values()];
      // Only the changed field itself, or fields in it, were taken; a parent says nothing.
      if (!changed.some((path) => owned.length >= path.length && overlaps(owned, path))) continue;
      const path = formatFieldPath(owned, { sensitive });
      taken.set(`${entry.manager}\n${path}`, { manager: entry.manager ?? "", path });
    }
  }
  return [...taken.values()];
}

/** The content that managers own; the rest of the metadata changes with every write. */
function content(object: ApiObject): JsonObject {
  const { metadata, ...rest } = object as unknown as JsonObject;
  const { labels = null, annotations = null } = isJsonObject(metadata) ? metadata : {};
  return { ...rest, metadata: { labels, annotations } };
}
