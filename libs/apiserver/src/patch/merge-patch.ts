import { applyMergePatch, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/**
 * Applies a merge patch like kube-apiserver's library: RFC 7396 takes lists as they are, but the library also removes
 * null members of objects in lists.
 */
export function applyServerMergePatch(target: JsonObject, patch: JsonValue): JsonObject {
  return applyMergePatch(target, pruneLists(patch)) as JsonObject;
}

function pruneLists(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    return value.map((item) =>
      isJsonObject(item) ? applyServerMergePatch({}, item) : pruneLists(item),
    );
  }
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, pruneLists(member)]),
  );
}
