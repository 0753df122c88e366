import { getOwn, isJsonObject, setOwn, type JsonObject, type JsonValue } from "@konverge/core";

/** Returns the value at a dotted path such as `spec.replicas`; undefined if a part is missing. */
export function getPath(object: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const part of path.split(".")) {
    if (!isJsonObject(value)) return undefined;
    value = getOwn(value, part);
  }
  return value;
}

/** Sets the value at a dotted path in place; creates missing parts. */
export function setPath(object: JsonObject, path: string, value: JsonValue): void {
  const parts = path.split(".");
  const last = parts.pop() ?? "";
  let node = object;
  for (const part of parts) {
    const next = getOwn(node, part);
    if (isJsonObject(next)) node = next;
    else {
      const made: JsonObject = {};
      setOwn(node, part, made);
      node = made;
    }
  }
  setOwn(node, last, value);
}
