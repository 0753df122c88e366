import {
  isJsonObject,
  setOwn,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import { resourceName } from "./resource-path.ts";

export type IsSensitive = (type: Pick<ResourceType, "group" | "resource">) => boolean;

/** Secrets are sensitive, and what `resources` names as `plural.group` (P12). */
export function makeIsSensitive(resources: readonly string[] = []): IsSensitive {
  const names = new Set(["secrets", ...resources]);
  return (type) => names.has(resourceName(type));
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
