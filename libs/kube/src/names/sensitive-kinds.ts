import {
  isJsonObject,
  resourceId,
  setOwn,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";

export type IsSensitive = (type: Pick<ResourceType, "group" | "resource" | "sensitive">) => boolean;

/**
 * Sensitive are Secrets, the given `resources` (as `plural.group`) and every type marked as sensitive (P12). The mark
 * is remembered, because errors and owner references identify the same objects by name alone.
 */
export function makeIsSensitive(resources: readonly string[] = []): IsSensitive {
  const names = new Set(["secrets", ...resources]);
  return (type) => {
    const name = resourceId(type);
    if (type.sensitive === true) names.add(name);
    return names.has(name);
  };
}

const REDACTED = "<redacted>";

/**
 * Returns the same shape without its values; deletions stay visible. Labels and annotations are redacted too, because
 * they can leak as well.
 */
export function redactValues(patch: JsonObject): JsonObject {
  const redacted: JsonObject = {};
  for (const [key, value] of Object.entries(patch)) setOwn(redacted, key, redact(value));
  return redacted;
}

function redact(value: JsonValue): JsonValue {
  if (value === null) return null;
  return isJsonObject(value) ? redactValues(value) : REDACTED;
}
