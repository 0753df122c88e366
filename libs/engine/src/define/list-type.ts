import { isJsonObject, type JsonObject } from "@konverge/core";

const LIST_TYPES = ["atomic", "set", "map"];
const SCALARS = ["string", "integer", "number", "boolean"];

/**
 * Returns what the API server would reject in a list's `x-kubernetes-list-type`, which defines how writers share the list:
 * `atomic` (default: the list is one value), `set` (each value has its writer), `map` (each item has, identified by its keys).
 */
export function listTypeIssue(schema: JsonObject): string | undefined {
  const type = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"];
  if (type === undefined) {
    return keys === undefined
      ? undefined
      : 'has x-kubernetes-list-map-keys, which need "x-kubernetes-list-type": "map"';
  }
  if (schema["type"] !== "array") return "has an x-kubernetes-list-type but is not a list";
  if (!LIST_TYPES.includes(String(type))) {
    return `has the x-kubernetes-list-type ${JSON.stringify(type)}; write atomic, set or map`;
  }
  const items = isJsonObject(schema["items"]) ? schema["items"] : {};
  if (type === "set" && !SCALARS.includes(String(items["type"]))) {
    return "is a set, whose items must be strings, numbers or booleans; objects need a map";
  }
  return type === "map" ? mapIssue(items, keys) : undefined;
}

function mapIssue(items: JsonObject, keys: unknown): string | undefined {
  if (!Array.isArray(keys) || keys.length === 0) {
    return 'is a map and needs its keys: "x-kubernetes-list-map-keys": ["name"]';
  }
  const properties = isJsonObject(items["properties"]) ? items["properties"] : {};
  const required: unknown[] = Array.isArray(items["required"]) ? items["required"] : [];
  for (const key of keys.map(String)) {
    const property = properties[key];
    if (!isJsonObject(property) || !SCALARS.includes(String(property["type"]))) {
      return `has the map key "${key}", which must be a string, number or boolean of its items`;
    }
    if (!required.includes(key) && property["default"] === undefined) {
      return `has the map key "${key}", which must be required or have a default`;
    }
  }
  return undefined;
}
