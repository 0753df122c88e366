import { isJsonObject, type JsonObject } from "@konverge/core";
import type { Change } from "./change.ts";
import { parsePointer } from "./pointer.ts";

/** A field that a change writes or reads. */
export interface TouchedPath {
  /** JSON Pointer into the change, for errors. */
  readonly pointer: string;
  readonly path: readonly string[];
  /** True if the field is only compared. */
  readonly isTest?: boolean;
  /** True if an object without fields is merged into the field, which keeps its content. */
  readonly isKept?: boolean;
}

interface Leaf {
  readonly path: readonly string[];
  readonly isKept: boolean;
}

/** Returns every field that a change writes, and those that a JSON Patch reads: it could copy them. */
export function touchedPaths(change: Change): readonly TouchedPath[] {
  switch (change.kind) {
    case "merge":
      return leavesOf(change.patch).map((leaf) => ({ pointer: "/patch", ...leaf }));
    case "apply":
      return leavesOf(change.object)
        .filter(({ path }) => !isIdentity(path))
        .map((leaf) => ({ pointer: "/object", ...leaf }));
    case "jsonPatch":
      return change.patch.flatMap((operation, at) => [
        {
          pointer: `/patch/${at}/path`,
          path: parsePointer(operation.path) ?? [],
          isTest: operation.op === "test",
        },
        ...("from" in operation
          ? [{ pointer: `/patch/${at}/from`, path: parsePointer(operation.from) ?? [] }]
          : []),
      ]);
    case "set":
    case "increment":
    case "append":
    case "remove":
      return [{ pointer: "/path", path: parsePointer(change.path) ?? [] }];
  }
}

/** Returns the paths of the values that are not objects, and of empty objects. */
export function leavesOf(object: JsonObject): readonly Leaf[] {
  return Object.entries(object).flatMap(([name, value]): readonly Leaf[] =>
    isJsonObject(value) && Object.keys(value).length > 0
      ? leavesOf(value).map((leaf) => ({ ...leaf, path: [name, ...leaf.path] }))
      : [{ path: [name], isKept: isJsonObject(value) }],
  );
}

/** The fields that name the object of an apply; the contracts compare them with the mutation. */
function isIdentity([first, second]: readonly string[]): boolean {
  if (first === "metadata") return second === "name" || second === "namespace";
  return first === "apiVersion" || first === "kind";
}
