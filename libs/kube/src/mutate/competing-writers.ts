import {
  defined,
  isJsonObject,
  jsonEquals,
  type JsonObject,
  type JsonValue,
  type ManagedFieldsEntry,
} from "@konverge/core";
import type { CompetingWriter } from "../contract/call-record.ts";
import {
  changedPaths,
  formatFieldPath,
  overlaps,
  ownedPaths,
  type PathElement,
} from "./managed-fields.ts";

/** Enough to show the contended fields; a record is not a copy of the object. */
const MAX_PATHS = 20;

interface Candidate {
  readonly entry: ManagedFieldsEntry;
  /**
   * The entry has changed. Its time has a granularity of seconds, so two writes within one second may look the same.
   */
  readonly moved: boolean;
  /** The entry is new, or has a new time. */
  readonly isNewer: boolean;
  readonly owned: readonly PathElement[][];
  /** Changed fields that it owns now, or else fields that it did not own before. */
  readonly paths: readonly PathElement[][];
  /** Changed fields that it owned before and that have no owner now. */
  readonly removed: readonly PathElement[][];
}

/**
 * Finds the writers between two reads of one object: the managers that now own the changed values. A removed field has
 * no owner; its last owner counts then, unless an entry has a new time.
 */
export function findCompetingWriters(
  before: JsonObject,
  found: JsonObject,
  { sensitive }: { readonly sensitive: boolean },
): CompetingWriter[] {
  const changed = changedPaths(content(before), content(found));
  const known = entriesOf(before);
  const now = entriesOf(found).map((entry) => ({ entry, owned: ownedPaths(entry.fieldsV1) }));
  // The owner of a map need not own its content (`"f:data":{}`), so for each change only the closest owners count.
  const closest = changed.map((change) => ({
    change,
    depth: Math.max(0, ...now.flatMap(({ owned }) => owned.map((path) => closeness(path, change)))),
  }));
  const isTouched = (path: readonly PathElement[]) =>
    closest.some(({ change, depth }) => depth > 0 && closeness(path, change) === depth);
  const isChanged = (path: readonly PathElement[]) =>
    changed.some((change) => overlaps(path, change));
  const isOwned = (path: readonly PathElement[]) =>
    now.some(({ owned }) => owned.some((other) => overlaps(other, path)));

  const candidates = now.map(({ entry, owned }): Candidate => {
    const previous = known.find((other) => isSameEntry(other, entry));
    const ownedBefore = ownedPaths(previous?.fieldsV1);
    const touched = owned.filter(isTouched);
    const gained = previous === undefined ? [] : difference(owned, ownedBefore);
    const isNewer = previous === undefined || previous.time !== entry.time;
    return {
      entry,
      isNewer,
      moved: isNewer || !jsonEquals(previous.fieldsV1, entry.fieldsV1),
      owned,
      paths: touched.length > 0 ? touched : gained,
      removed: ownedBefore.filter((path) => isChanged(path) && !isOwned(path)),
    };
  });
  // An entry that only shrank lost its fields to another writer.
  const movers = candidates.filter(
    ({ moved, isNewer, paths }) => moved && (isNewer || paths.length > 0),
  );
  const explained = movers.flatMap(({ owned }) => owned);
  const others = candidates.filter(
    ({ moved, paths }) =>
      !moved && paths.some((path) => !explained.some((owned) => overlaps(owned, path))),
  );
  const writers = [...movers, ...others];
  const winners =
    writers.length > 0 ? writers : candidates.filter(({ removed }) => removed.length > 0);
  return winners.map(({ entry, paths, removed }) => ({
    manager: entry.manager ?? "unknown",
    operation: entry.operation ?? "Update",
    ...defined({ subresource: entry.subresource }),
    paths: [
      ...new Set([...paths, ...removed].map((path) => formatFieldPath(path, { sensitive }))),
    ].slice(0, MAX_PATHS),
  }));
}

/** The content that managers own; the rest of the metadata changes with every write. */
function content(object: JsonObject): JsonObject {
  const { metadata, ...rest } = object;
  const meta = isJsonObject(metadata) ? metadata : {};
  const kept: JsonObject = {};
  for (const field of ["labels", "annotations", "finalizers", "ownerReferences"]) {
    const value: JsonValue | undefined = meta[field];
    if (value !== undefined) kept[field] = value;
  }
  return { ...rest, metadata: kept };
}

function entriesOf(object: JsonObject): ManagedFieldsEntry[] {
  const metadata = isJsonObject(object["metadata"]) ? object["metadata"] : {};
  const entries = metadata["managedFields"];
  return Array.isArray(entries) ? entries.filter(isJsonObject) : [];
}

function isSameEntry(left: ManagedFieldsEntry, right: ManagedFieldsEntry): boolean {
  return (
    left.manager === right.manager &&
    left.operation === right.operation &&
    left.subresource === right.subresource &&
    (left.operation === "Apply" || left.apiVersion === right.apiVersion)
  );
}

/** Length of the common path of an owned field and a change; 0 if they do not overlap. */
function closeness(owned: readonly PathElement[], change: readonly PathElement[]): number {
  return overlaps(owned, change) ? Math.min(owned.length, change.length) : 0;
}

/** Returns the paths that were not owned before. A map that remains of its former members is not new. */
function difference(
  paths: readonly PathElement[][],
  known: readonly PathElement[][],
): PathElement[][] {
  return paths.filter(
    (path) => !known.some((other) => other.length >= path.length && overlaps(other, path)),
  );
}
