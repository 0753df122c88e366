import { jsonEquals, type JsonObject } from "@konverge/core";
import { badRequest, StatusError, unconverted } from "../errors/status-error.ts";
import { formatTime, metadataOf, textOf } from "../objects/metadata.ts";
import type { Schema } from "../schema/schema.ts";
import { compareTyped, fieldsOf } from "./compare.ts";
import {
  difference,
  differenceDeep,
  EMPTY_FIELDS,
  fieldSetOf,
  intersection,
  isEmptySet,
  listPaths,
  union,
  type FieldSet,
} from "./field-set.ts";
import { fieldsOfLastApply, updateLastApplied } from "./last-applied.ts";
import {
  identityOf,
  isReset,
  readManagedFields,
  writeManagedFields,
  type Managed,
  type ManagedFields,
} from "./managed-fields.ts";
import { mergeTyped, removeFields, withNamedParents } from "./merge.ts";
import { typedError } from "./typed-validation.ts";

/** How the field ownership of a write is tracked. */
export interface Tracking {
  readonly schema: Schema;
  /** API version of the request. */
  readonly apiVersion: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  /** The blank object of the kind. */
  readonly blank: JsonObject;
  /** Fields that clients cannot set through this endpoint. */
  readonly resetFields: FieldSet;
  readonly manager: string;
  readonly nowMs: number;
}

const STRIPPED = fieldSetOf(
  [
    [],
    ["name"],
    ["namespace"],
    ["creationTimestamp"],
    ["selfLink"],
    ["uid"],
    ["generation"],
    ["managedFields"],
    ["resourceVersion"],
  ]
    .map((path) => ["f:metadata", ...path.map((name) => `f:${name}`)])
    .concat([["f:apiVersion"], ["f:kind"]]),
);
/** Maximum number of separate entries for updates. */
const MAX_UPDATERS = 10;

/**
 * Tracks a write that is not an apply: the manager owns the changed fields. Sets `metadata.managedFields` of `next`.
 * `live` has no uid if the object is being created.
 */
export function trackUpdate(live: JsonObject, next: JsonObject, tracking: Tracking): void {
  const requested = metadataOf(next)["managedFields"];
  const liveManaged = () => readManagedFields(metadataOf(live)["managedFields"]) ?? new Map();
  let managed: ManagedFields;
  if (tracking.subresource !== "") managed = liveManaged();
  else if (isReset(requested)) managed = new Map();
  else {
    managed = readManagedFields(requested) ?? new Map();
    if (managed.size === 0) managed = liveManaged();
  }
  const isTracked = managed.size > 0 || textOf(metadataOf(live), "uid") === "";
  if (isTracked) managed = capUpdaters(update(live, next, managed, tracking));
  setManagedFields(next, managed);
}

/** Updates the owners after a plain write, which never conflicts. */
function update(
  live: JsonObject,
  next: JsonObject,
  before: ManagedFields,
  { schema, apiVersion, subresource, resetFields, manager, nowMs }: Tracking,
): ManagedFields {
  const found = compareTyped(schema, withoutManagedFields(live), withoutManagedFields(next));
  const added = differenceDeep(found.added, resetFields);
  const modified = differenceDeep(found.modified, resetFields);
  const removed = differenceDeep(found.removed, resetFields);
  const changed = union(modified, added);
  const managed = release(before, union(changed, removed));
  const mine = difference(changed, STRIPPED);
  if (isEmptySet(mine)) return managed;
  const entry: Managed = {
    manager: manager === "" ? "unknown" : manager,
    operation: "Update",
    apiVersion,
    subresource,
    time: formatTime(nowMs),
    fields: mine,
  };
  const id = identityOf(entry);
  managed.set(id, { ...entry, fields: union(mine, managed.get(id)?.fields ?? EMPTY_FIELDS) });
  return managed;
}

/** Removes fields from every owner; an owner without fields is dropped. */
function release(managed: ManagedFields, fields: FieldSet, except?: string): ManagedFields {
  const rest: ManagedFields = new Map();
  for (const [id, entry] of managed) {
    const kept = id === except ? entry.fields : difference(entry.fields, fields);
    if (!isEmptySet(kept)) rest.set(id, kept === entry.fields ? entry : { ...entry, fields: kept });
  }
  return rest;
}

function capUpdaters(managed: ManagedFields): ManagedFields {
  const updaters = [...managed]
    .filter(([, { operation }]) => operation === "Update")
    .toSorted(([, a], [, b]) => ((a.time ?? "") < (b.time ?? "") ? -1 : 1));
  let count = updaters.length;
  const first = new Map<string, string>();
  for (const [id, entry] of updaters) {
    if (count <= MAX_UPDATERS) break;
    const bucket: Managed = { ...entry, manager: "ancient-changes", subresource: "" };
    const bucketId = identityOf(bucket);
    const firstId = first.get(entry.apiVersion);
    if (firstId === undefined) {
      first.set(entry.apiVersion, id);
      continue;
    }
    const into = managed.get(bucketId) ?? managed.get(firstId);
    managed.delete(firstId);
    managed.delete(id);
    managed.set(bucketId, { ...bucket, fields: union(entry.fields, into?.fields ?? EMPTY_FIELDS) });
    count--;
  }
  return managed;
}

/**
 * Server-side apply: returns the live object merged with the configuration, with updated owners. Fields that the
 * manager applied before and omits now are removed, unless another manager owns them.
 * @throws StatusError for an invalid configuration, or 409 for fields of other managers without `force`
 */
export function applyConfiguration(
  live: JsonObject,
  config: JsonObject,
  tracking: Tracking & { readonly force: boolean },
): JsonObject {
  const { schema, blank, apiVersion, subresource, resetFields, manager, nowMs, force } = tracking;
  if (metadataOf(config)["managedFields"] !== undefined) {
    throw badRequest("metadata.managedFields must be nil");
  }
  const problem = typedError(schema, config, "");
  if (problem !== undefined) {
    const where = `${textOf(metadataOf(config), "namespace")}/${textOf(metadataOf(config), "name")}`;
    throw unconverted(
      `failed to create typed patch object (${where}; ${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${textOf(config, "kind")}): ${problem}`,
    );
  }
  const current = withoutManagedFields(live);
  let managed = readManagedFields(metadataOf(live)["managedFields"]) ?? new Map();
  if (managed.size === 0 && textOf(metadataOf(live), "uid") !== "") {
    managed = update(blank, live, managed, { ...tracking, manager: "before-first-apply" });
  }
  const applier = { manager, operation: "Apply", apiVersion, subresource } as const;
  const id = identityOf(applier);
  const last = managed.get(id);
  const fields = differenceDeep(fieldsOf(schema, config), resetFields);
  managed.set(id, { ...applier, time: last?.time, fields });

  const merged = mergeTyped(schema, current, config) as JsonObject;
  const next = last === undefined ? merged : prune(schema, merged, managed, last.fields);
  const found = compareTyped(schema, current, next);
  const changed = differenceDeep(union(found.modified, found.added), resetFields);
  if (!force) {
    const allowed = fieldsOfLastApply(manager, live, { schema, apiVersion });
    refuseConflicts(managed, id, { changed, allowed, subresource });
  }
  const removed = differenceDeep(found.removed, resetFields);
  managed = release(managed, union(changed, removed), id);

  const own = managed.get(id);
  const kept = difference(fields, STRIPPED);
  // A configuration without changes does not update its entry's time, even if the entry is new.
  const isSame = jsonEquals(current, next);
  if (isEmptySet(kept)) managed.delete(id);
  else if (own !== undefined) {
    managed.set(id, { ...own, fields: kept, time: isSame ? last?.time : formatTime(nowMs) });
  }
  const result = { ...next, metadata: { ...metadataOf(next) } };
  setManagedFields(result, managed);
  updateLastApplied(manager, result, config);
  return result;
}

/** Removes fields that were applied before and have no owner now. */
function prune(
  schema: Schema,
  merged: JsonObject,
  managed: ManagedFields,
  last: FieldSet,
): JsonObject {
  if (isEmptySet(last)) return merged;
  const named = (set: FieldSet) => withNamedParents(schema, set);
  const without = (set: FieldSet) => (removeFields(schema, merged, set) ?? {}) as JsonObject;
  const mergedFields = named(fieldsOf(schema, merged));
  let owned: FieldSet = EMPTY_FIELDS;
  for (const { fields } of managed.values()) owned = union(owned, fields);
  const emptied = named(fieldsOf(schema, without(named(last))));
  const pruned = without(difference(mergedFields, union(emptied, named(owned))));
  const rest = named(fieldsOf(schema, pruned));
  return without(intersection(difference(mergedFields, rest), named(last)));
}

function refuseConflicts(
  managed: ManagedFields,
  applier: string,
  {
    changed,
    allowed,
    subresource,
  }: { readonly changed: FieldSet; readonly allowed: FieldSet; readonly subresource: string },
): void {
  const conflicts: { readonly manager: string; readonly path: string }[] = [];
  const entries = [...managed].toSorted(([, a], [, b]) => (a.manager < b.manager ? -1 : 1));
  for (const [id, entry] of entries) {
    if (id === applier) continue;
    const refused = difference(intersection(entry.fields, changed), allowed);
    for (const path of listPaths(refused)) {
      conflicts.push({ manager: describeManager(entry, subresource), path });
    }
  }
  const [only] = conflicts;
  if (only === undefined) return;
  const causes = conflicts.map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${manager}`,
    field: path,
  }));
  throw new StatusError(409, "Conflict", conflictMessage(conflicts), { causes });
}

function conflictMessage(
  conflicts: readonly { readonly manager: string; readonly path: string }[],
): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.path}`;
  }
  const lines: string[] = [];
  for (const [manager, own] of Map.groupBy(conflicts, (one) => one.manager)) {
    lines.push(`conflicts with ${manager}:`, ...own.map(({ path }) => `- ${path}`));
  }
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function describeManager(
  { manager, subresource, operation, apiVersion }: Managed,
  applied: string,
): string {
  // An apply of a scale sees the owners of its fields in its own version.
  const version = applied === "scale" ? "autoscaling/v1" : apiVersion;
  const name = JSON.stringify(manager);
  const part =
    subresource === "" ? name : `${name} with subresource ${JSON.stringify(subresource)}`;
  return operation === "Update" ? `${part} using ${version}` : part;
}

function withoutManagedFields(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = metadataOf(object);
  return { ...object, metadata };
}

function setManagedFields(object: JsonObject, managed: ManagedFields): void {
  const list = writeManagedFields(managed);
  if (list.length === 0) delete metadataOf(object)["managedFields"];
  else metadataOf(object)["managedFields"] = list;
}
