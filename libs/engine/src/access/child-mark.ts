import { createHash } from "node:crypto";
import { isJsonObject, type ApiObject, type JsonObject, type JsonValue } from "@konverge/core";
import { ownerOf, ownsFields, withoutManagedFields } from "@konverge/kube";

/** Names the controller whose list of children contains the object. */
const CHILD_OF = "konverge.dev/child-of";
/** A hash of the applied fields, salted with the uid of the owner. */
const APPLIED = "konverge.dev/applied";

/** Returns the object to apply: with the marks of the controller's children. */
export function withChildMarks(
  intent: ApiObject,
  { controller, owner }: { readonly controller: string; readonly owner: ApiObject },
): ApiObject {
  const hash = createHash("sha256")
    .update(`${owner.metadata.uid ?? ""}\n${canonical(intent as unknown as JsonValue)}`)
    .digest("hex");
  const marks = { [CHILD_OF]: controller, [APPLIED]: hash.slice(0, 32) };
  const annotations = { ...intent.metadata.annotations, ...marks };
  return { ...intent, metadata: { ...intent.metadata, annotations } };
}

/** Returns the controller that has marked the object as a child; undefined without a mark. */
export function markedBy({ metadata }: ApiObject): string | undefined {
  return metadata.annotations?.[CHILD_OF];
}

/**
 * Returns a watched object for the cache, without the field managers. A child keeps the fields of its controller's last apply,
 * by which {@link isApplied} detects changes of other writers.
 */
export function withoutOtherManagers(object: ApiObject): ApiObject {
  const trimmed = withoutManagedFields(object);
  const controller = markedBy(object);
  const applied = object.metadata.managedFields?.find(
    (entry) => entry.manager === `konverge/${controller ?? ""}` && entry.operation === "Apply",
  );
  if (applied === undefined) return trimmed;
  return { ...trimmed, metadata: { ...trimmed.metadata, managedFields: [applied] } };
}

export function isControlledBy(object: ApiObject, owner: ApiObject): boolean {
  const { uid } = owner.metadata;
  return uid !== undefined && ownerOf(object)?.uid === uid;
}

/** Returns true if the object has all applied fields, and no other writer has changed one. */
export function isApplied(object: ApiObject, wanted: ApiObject, manager: string): boolean {
  return (
    object.metadata.annotations?.[APPLIED] === wanted.metadata.annotations?.[APPLIED] &&
    ownsFields(object, wanted as unknown as JsonObject, manager)
  );
}

/** JSON with sorted members. */
function canonical(value: JsonValue): string {
  return JSON.stringify(value, (_, member: JsonValue) =>
    isJsonObject(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
