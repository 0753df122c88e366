import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** Returns the object's metadata; adds an empty one if it is missing. */
export function metadataOf(object: JsonObject): JsonObject {
  const metadata = object["metadata"];
  if (isJsonObject(metadata)) return metadata;
  const created: JsonObject = {};
  object["metadata"] = created;
  return created;
}

/** Returns a member as text; empty if it is missing or of another type. */
export function textOf(object: JsonObject, member: string): string {
  const value = object[member];
  return typeof value === "string" ? value : "";
}

/** Returns a member that is an object; undefined if it is missing or of another type. */
export function objectOf(object: JsonObject, member: string): JsonObject | undefined {
  const value = object[member];
  return isJsonObject(value) ? value : undefined;
}

/** Returns a member's strings; empty if it is missing. */
export function stringsOf(object: JsonObject, member: string): string[] {
  const value = object[member];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** Returns a member's objects; empty if it is missing. */
export function objectsOf(object: JsonObject, member: string): JsonObject[] {
  const value = object[member];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** Sets a member, or removes it if the value is undefined. */
export function setOrDelete(
  object: JsonObject,
  member: string,
  value: JsonValue | undefined,
): void {
  if (value === undefined) delete object[member];
  else object[member] = value;
}

export const nameOf = (object: JsonObject): string => textOf(metadataOf(object), "name");
export const uidOf = (object: JsonObject): string => textOf(metadataOf(object), "uid");
export const versionOf = (object: JsonObject): string =>
  textOf(metadataOf(object), "resourceVersion");
export const finalizersOf = (object: JsonObject): string[] =>
  stringsOf(metadataOf(object), "finalizers");
export const isTerminating = (object: JsonObject): boolean =>
  textOf(metadataOf(object), "deletionTimestamp") !== "";
export const generationOf = (object: JsonObject): number =>
  Number(metadataOf(object)["generation"] ?? 0);

/** Whole seconds, the format of metav1.Time. */
export const formatTime = (ms: number): string =>
  new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
