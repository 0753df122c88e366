import { metadataOf, type JsonObject } from "@konverge/core";

export function textOf(object: JsonObject, field: string): string | undefined {
  const value = metadataOf(object)[field];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function withMetadata(object: JsonObject, changes: JsonObject): JsonObject {
  return { ...object, metadata: { ...metadataOf(object), ...changes } };
}

/** The object without the named members of its metadata. */
export function withoutMetadata(object: JsonObject, names: readonly string[]): JsonObject {
  const metadata = Object.entries(metadataOf(object)).filter(([name]) => !names.includes(name));
  return { ...object, metadata: Object.fromEntries(metadata) };
}

export function finalizersOf(object: JsonObject): readonly string[] {
  const finalizers = metadataOf(object)["finalizers"];
  return Array.isArray(finalizers) ? finalizers.filter((each) => typeof each === "string") : [];
}

export function isTerminatingView(object: JsonObject): boolean {
  return textOf(object, "deletionTimestamp") !== undefined;
}
