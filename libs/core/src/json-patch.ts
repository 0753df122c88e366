import {
  cloneJson,
  getOwn,
  isJsonObject,
  jsonEquals,
  setOwn,
  type JsonObject,
  type JsonValue,
} from "./lossless-json.ts";

/** A JSON Patch that cannot be applied. */
export class JsonPatchError extends Error {
  override readonly name = "JsonPatchError";
  /** Index of the operation that cannot be applied. */
  readonly index: number;
  constructor(message: string, index: number, options?: ErrorOptions) {
    super(message, options);
    this.index = index;
  }
}

/** Copies can double a document with each operation. Three times the size limit of an object. */
const MOST_COPIED_BYTES = 4_500_000;

/**
 * Applies a JSON Patch (RFC 6902) like kube-apiserver's library: `test` of a missing member against null succeeds; it
 * fails for a missing item, or for a member with a missing parent. Returns a new value. `tested` has the operations
 * with the values that their tests compare.
 * @throws JsonPatchError for an operation that cannot be applied
 */
export function applyJsonPatch(
  target: JsonObject,
  operations: readonly JsonValue[],
  tested: readonly JsonValue[] = operations,
): JsonValue {
  let document: JsonValue = cloneJson(target);
  let copiedBytes = 0;
  for (const [index, operation] of operations.entries()) {
    try {
      if (!isJsonObject(operation)) throw new UnfitOperation("is not an object");
      if (operation["op"] === "copy") {
        const value = read(document, pointerOf(operation, "from"));
        copiedBytes += JSON.stringify(value ?? null).length;
        if (copiedBytes > MOST_COPIED_BYTES)
          throw new UnfitOperation(`copies more than ${MOST_COPIED_BYTES} bytes`);
      }
      document = applyOperation(document, operation, tested[index] as JsonObject);
    } catch (error) {
      if (!(error instanceof UnfitOperation)) throw error;
      throw new JsonPatchError(error.message, index, { cause: error });
    }
  }
  return document;
}

class UnfitOperation extends Error {}

function applyOperation(document: JsonValue, operation: JsonObject, tested: JsonObject): JsonValue {
  const path = pointerOf(operation, "path");
  switch (operation["op"]) {
    case "add":
      return add(document, path, cloneJson(valueOf(operation)));
    case "remove":
      return remove(document, path);
    case "replace":
      return replace(document, path, cloneJson(valueOf(operation)));
    case "test": {
      const value = tested["value"] ?? null;
      const found = read(document, path);
      // A missing member of a map is null; a missing item of a list is an error.
      if (found === undefined && Array.isArray(parentOf(document, path)[0])) {
        throw new UnfitOperation("index out of range");
      }
      if (!jsonEquals(found ?? null, value)) throw new UnfitOperation("test failed");
      return document;
    }
    case "copy":
    case "move": {
      const from = pointerOf(operation, "from");
      const value = read(document, from);
      if (value === undefined) throw new UnfitOperation("source is absent");
      const rest = operation["op"] === "move" ? remove(document, from) : document;
      return add(rest, path, cloneJson(value));
    }
    default:
      throw new UnfitOperation("unknown operation");
  }
}

function valueOf(operation: JsonObject): JsonValue {
  const value = getOwn(operation, "value");
  if (value === undefined) throw new UnfitOperation("value is missing");
  return value;
}

function pointerOf(operation: JsonObject, member: "from" | "path"): string[] {
  const pointer = operation[member];
  if (typeof pointer !== "string") throw new UnfitOperation(`${member} is missing`);
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw new UnfitOperation(`${member} is not a JSON Pointer`);
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(document: JsonValue, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = document;
  for (const part of path) {
    if (Array.isArray(value)) value = value[indexOf(part, value.length)];
    else if (isJsonObject(value)) value = getOwn(value, part);
    else return undefined;
  }
  return value;
}

/** Returns the container of the last part of a path, and that part. */
function parentOf(
  document: JsonValue,
  path: readonly string[],
): [JsonObject | JsonValue[], string] {
  const parent = read(document, path.slice(0, -1));
  if (!isJsonObject(parent) && !Array.isArray(parent)) {
    throw new UnfitOperation("the parent of the path is absent");
  }
  return [parent, path.at(-1) ?? ""];
}

function add(document: JsonValue, path: readonly string[], value: JsonValue): JsonValue {
  if (path.length === 0) return value;
  const [parent, part] = parentOf(document, path);
  if (Array.isArray(parent)) {
    const index = part === "-" ? parent.length : indexOf(part, parent.length + 1);
    if (index < 0) throw new UnfitOperation("index out of range");
    parent.splice(index, 0, value);
  } else setOwn(parent, part, value);
  return document;
}

/** A list item must exist; a member of a map is set in any case, as in kube-apiserver's library. */
function replace(document: JsonValue, path: readonly string[], value: JsonValue): JsonValue {
  if (path.length === 0) return value;
  const [parent, part] = parentOf(document, path);
  if (Array.isArray(parent)) {
    const index = indexOf(part, parent.length);
    if (index < 0) throw new UnfitOperation("index out of range");
    parent[index] = value;
  } else setOwn(parent, part, value);
  return document;
}

function remove(document: JsonValue, path: readonly string[]): JsonValue {
  if (path.length === 0 || read(document, path) === undefined) {
    throw new UnfitOperation("remove of an absent path");
  }
  const [parent, part] = parentOf(document, path);
  if (Array.isArray(parent)) parent.splice(indexOf(part, parent.length), 1);
  else delete parent[part];
  return document;
}

/** Returns a list index below `length`, or -1. */
function indexOf(part: string, length: number): number {
  const index = /^(0|[1-9]\d*)$/.test(part) ? Number(part) : -1;
  return index < length ? index : -1;
}
