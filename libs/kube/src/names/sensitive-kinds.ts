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
 * Secrets are sensitive, what `resources` names as `plural.group`, and every type that says so itself (P12). The latter is
 * remembered: the same objects are also found by names alone, as in errors and owner references.
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

/** The same shape without its values; deletions stay visible. Labels and annotations go too, for they leak as well. */
export function redactValues(patch: JsonObject): JsonObject {
  const redacted: JsonObject = {};
  for (const [key, value] of Object.entries(patch)) setOwn(redacted, key, redact(value));
  return redacted;
}

function redact(value: JsonValue): JsonValue {
  if (value === null) return null;
  return isJsonObject(value) ? redactValues(value) : REDACTED;
}
