import {
  applyJsonPatch,
  applyMergePatch,
  isRawNumber,
  jsonEquals,
  JsonPatchError,
  parseJson,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import type { DraftChange } from "./change.ts";
import { isTextField } from "./text-fields.ts";
import { parsePointer } from "./pointer.ts";
import { typeOf, UnfitChange, updateAt } from "./update-at.ts";

/** `refused`: why the changes do not fit the object, without its values. `index`: the change. */
export type AppliedChanges =
  | { readonly object: JsonObject }
  | { readonly refused: string; readonly index: number };

/**
 * Applies changes in order, all or none. The draft is not changed; the result shares its unchanged parts, so neither may be
 * changed in place later. The same draft and changes always give the same result.
 */
export function applyChanges(draft: JsonObject, changes: readonly DraftChange[]): AppliedChanges {
  let object = draft;
  for (const [index, change] of changes.entries()) {
    try {
      object = applyChange(object, change);
    } catch (error) {
      if (error instanceof UnfitChange) return { refused: error.message, index };
      if (!(error instanceof JsonPatchError)) throw error;
      return { refused: `operation ${error.index} of the JSON Patch: ${error.message}`, index };
    }
  }
  return { object };
}

/** @throws UnfitChange, JsonPatchError */
function applyChange(object: JsonObject, change: DraftChange): JsonObject {
  switch (change.kind) {
    case "set":
      return updateAt(object, pathOf(change), () => change.value, { create: true });
    case "merge":
      return applyMergePatch(object, change.patch) as JsonObject;
    case "increment":
      return increment(object, change);
    case "append":
      return updateAt(
        object,
        pathOf(change),
        (list = []) => {
          const items = demandList(list, change.path);
          return items.some((item) => jsonEquals(item, change.value))
            ? items
            : [...items, change.value];
        },
        { create: true },
      );
    case "remove":
      return remove(object, change);
    case "jsonPatch":
      return applyJsonPatch(object, change.patch) as JsonObject;
  }
}

function remove(object: JsonObject, change: DraftChange & { readonly kind: "remove" }): JsonObject {
  const { value } = change;
  const update = (before: JsonValue | undefined): JsonValue | undefined => {
    if (value === undefined || before === undefined) return undefined;
    const kept = demandList(before, change.path).filter((item) => !jsonEquals(item, value));
    return kept;
  };
  return updateAt(object, pathOf(change), update, { create: false });
}

const INTEGER = /^-?\d{1,19}$/;
const LARGEST = 2n ** 63n - 1n;

function increment(
  object: JsonObject,
  { path, by }: DraftChange & { readonly kind: "increment" },
): JsonObject {
  const segments = pathOf({ path });
  const update = (before: JsonValue | undefined): JsonValue => {
    const isText =
      before === undefined ? isTextField(object, segments) : typeof before === "string";
    const sum = integerOf(before, path) + BigInt(by);
    if (sum > LARGEST || sum < -LARGEST - 1n) {
      throw new UnfitChange(`${path} plus ${by} exceeds a 64-bit integer`);
    }
    return isText ? String(sum) : parseJson(String(sum));
  };
  return updateAt(object, segments, update, { create: true });
}

/** @throws UnfitChange */
function integerOf(value: JsonValue | undefined, path: string): bigint {
  if (value === undefined) return 0n;
  if (isRawNumber(value) && INTEGER.test(value.rawJSON)) return BigInt(value.rawJSON);
  if (typeof value === "string" && INTEGER.test(value)) return BigInt(value);
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  const what = typeof value === "string" ? "text without an integer" : typeOf(value);
  const isFraction = typeof value === "number" || isRawNumber(value);
  throw new UnfitChange(`${path} is ${isFraction ? "not an integer" : what}`);
}

/** @throws UnfitChange */
function demandList(value: JsonValue, path: string): JsonValue[] {
  if (Array.isArray(value)) return value;
  throw new UnfitChange(`${path} is ${typeOf(value)}, not a list`);
}

/** @throws UnfitChange */
function pathOf({ path }: { readonly path: string }): readonly string[] {
  const segments = parsePointer(path);
  if (segments !== undefined && segments.length > 0) return segments;
  throw new UnfitChange(`"${path}" is not a JSON Pointer of a field, such as /spec/replicas`);
}
