import { defined, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** Fields that belong to the form of an object; not a secret, also of sensitive kinds. */
const PUBLIC = new Set(["apiVersion", "kind", "type", "immutable"]);
/** Of a Status. */
const RESULT = new Set(["apiVersion", "kind", "status", "code", "reason"]);
/** Metadata that identifies an object; not a secret. */
export const IDENTITY: ReadonlySet<string> = new Set([
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "finalizers",
  "ownerReferences",
  "generateName",
  "managedFields",
  "continue",
  "remainingItemCount",
]);
const REDACTED = "(redacted)";

/**
 * Returns a sensitive object, a list of them, a patch or a Status without its values. The names of fields remain, so that a replay
 * takes the same branches where it can.
 */
export function hideValues(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(hideOperation);
  if (!isJsonObject(value)) return REDACTED;
  const shown = value["kind"] === "Status" ? RESULT : PUBLIC;
  const members = Object.entries(value).map(([name, member]): [string, JsonValue] => {
    if (name === "items" && Array.isArray(member)) return [name, member.map(hideValues)];
    if (name === "metadata" && isJsonObject(member)) return [name, hideMetadata(member)];
    if (name === "details" && value["kind"] === "Status") return [name, hideDetails(member)];
    const isPublic = shown.has(name) && !isJsonObject(member);
    return [name, isPublic ? member : hide(member)];
  });
  return Object.fromEntries(members);
}

/** An operation of a JSON patch, or an object of a list. */
function hideOperation(value: JsonValue): JsonValue {
  if (!isJsonObject(value) || !("op" in value)) return hideValues(value);
  const { op = null, path = null, from, value: given } = value;
  const isVersion = /^\/metadata\/(resourceVersion|uid)$/.test(String(path));
  return {
    op,
    path,
    ...defined({ from }),
    ...(given === undefined ? {} : { value: isVersion ? given : hide(given) }),
  };
}

function hideMetadata(metadata: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [
      name,
      IDENTITY.has(name) ? value : hide(value),
    ]),
  );
}

/** Of a Status, without its causes, whose messages quote values. */
function hideDetails(details: JsonValue): JsonValue {
  if (!isJsonObject(details)) return REDACTED;
  const { name = "", group = "", kind = "", uid = "" } = details;
  return { name, group, kind, uid };
}

function hide(value: JsonValue): JsonValue {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(hide);
  if (!isJsonObject(value)) return REDACTED;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, hide(member)]));
}
