import { createHash } from "node:crypto";
import {
  getOwn,
  isJsonObject,
  type ApiObject,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { ownerOf, ownsFields, withoutManagedFields } from "@konverge/kube";

/** Names the controller whose list of children contains the object. */
const CHILD_OF = "konverge.dev/child-of";
/** A hash of the applied fields, salted with the uid of the owner. Of a sensitive object, only of the fields' names (P12). */
const APPLIED = "konverge.dev/applied";

/** Returns the object to apply: with the marks of the controller's children. */
export function withChildMarks(
  intent: ApiObject,
  {
    controller,
    owner,
    isSensitive,
  }: { readonly controller: string; readonly owner: ApiObject; readonly isSensitive: boolean },
): ApiObject {
  const content = intent as unknown as JsonValue;
  const hash = createHash("sha256")
    .update(`${owner.metadata.uid ?? ""}\n${canonical(isSensitive ? shapeOf(content) : content)}`)
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
export function isApplied(
  object: ApiObject,
  wanted: ApiObject,
  { manager, isSensitive }: { readonly manager: string; readonly isSensitive: boolean },
): boolean {
  const intent = wanted as unknown as JsonObject;
  return (
    object.metadata.annotations?.[APPLIED] === wanted.metadata.annotations?.[APPLIED] &&
    ownsFields(object, intent, manager) &&
    // Its hash has no values. Values that the server stores in another form are applied each time.
    (!isSensitive || contains(object as unknown as JsonValue, asStored(intent)))
  );
}

/** The fields and the lengths of lists, without values: a hash of these could be guessed. */
function shapeOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (!isJsonObject(value)) return value === null ? null : "";
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}

/** The API server stores the `stringData` of a Secret in its `data`. */
function asStored({ stringData, ...intent }: JsonObject): JsonObject {
  if (!isJsonObject(stringData)) return intent;
  const encoded = Object.entries(stringData).map(([name, text]) => {
    return [name, Buffer.from(String(text)).toString("base64")] as const;
  });
  const data = isJsonObject(intent["data"]) ? intent["data"] : {};
  return { ...intent, data: { ...data, ...Object.fromEntries(encoded) } };
}

function contains(value: JsonValue | undefined, wanted: JsonValue): boolean {
  if (Array.isArray(wanted)) {
    return wanted.every(
      (each) => Array.isArray(value) && value.some((item) => contains(item, each)),
    );
  }
  if (!isJsonObject(wanted)) return wanted === null || value === wanted;
  return (
    isJsonObject(value) &&
    Object.entries(wanted).every(([name, member]) => contains(getOwn(value, name), member))
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
