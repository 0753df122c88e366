import {
  applyMergePatch,
  diffMergePatch,
  getOwn,
  isJsonObject,
  jsonEquals,
  setOwn,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";

/** The result of a write that the server has computed on the object without the earlier planned writes. */
export interface Merge {
  /** The object with all planned writes so far. */
  readonly view: JsonObject;
  /** On the server. */
  readonly before: JsonObject;
  /** `before` after the write, as the server computed it; undefined if it could not. */
  readonly result: JsonObject | undefined;
  /** The body of the write. */
  readonly intent: JsonObject;
  /** True for an apply. The fields that it removes depend on owners, which earlier planned writes may have changed. */
  readonly isApply: boolean;
  /** Receives the path of a list that both change: how the server merges it is unknown. */
  readonly onUnknown: (path: string) => void;
}

/** Combines a write with the earlier planned writes of its object. */
export function mergeIntent(merge: Merge): JsonObject {
  const { view, before, result, intent, isApply, onUnknown } = merge;
  const made = result === undefined ? undefined : diffMergePatch(plain(before), plain(result));
  const changes = made !== undefined && isApply ? unplanned(made, { view, before }) : made;
  const composed = changes === undefined ? view : (applyMergePatch(view, changes) as JsonObject);
  return impose({ target: composed, intent, view, before, result }, "", onUnknown) as JsonObject;
}

/** Returns the changes without removed fields and without those that earlier planned writes have changed as well. */
function unplanned(
  changes: JsonObject,
  { view, before }: Readonly<Record<"view" | "before", JsonValue | undefined>>,
): JsonObject {
  const kept = Object.entries(changes).flatMap(([name, change]): [string, JsonValue][] => {
    if (change === null) return [];
    const old = { view: memberOf(view, name), before: memberOf(before, name) };
    if (isJsonObject(change) && isJsonObject(old.before) && isJsonObject(old.view)) {
      return [[name, unplanned(change, old)]];
    }
    return jsonEquals(old.view ?? null, old.before ?? null) ? [[name, change]] : [];
  });
  return Object.fromEntries(kept);
}

interface Imposed {
  readonly target: JsonValue | undefined;
  readonly intent: JsonValue;
  readonly view: JsonValue | undefined;
  readonly before: JsonValue | undefined;
  readonly result: JsonValue | undefined;
}

/** Sets the fields that the write names: a value that equals the server's may differ from the planned value. */
function impose(
  { target, intent, view, before, result }: Imposed,
  path: string,
  onUnknown: (path: string) => void,
): JsonValue {
  if (Array.isArray(intent)) {
    // The server has merged the list without the earlier planned writes of it.
    const isUntouched = result !== undefined && jsonEquals(view, before);
    if (isUntouched) return result;
    const items = mergeNamed(view, intent) ?? result ?? intent;
    if (view !== undefined && !jsonEquals(items, view)) onUnknown(path);
    return items;
  }
  if (!isJsonObject(intent)) return result ?? intent;
  const merged: JsonObject = isJsonObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(intent)) {
    if (value === undefined || name.startsWith("$") || value === null) continue;
    if (path === "" && (name === "apiVersion" || name === "kind")) continue;
    if (path === "/metadata" && (name === "name" || name === "namespace")) continue;
    const parts = { target: merged, view, before, result } as const;
    const members = Object.fromEntries(
      Object.entries(parts).map(([part, whole]) => [part, memberOf(whole, name)]),
    ) as unknown as Omit<Imposed, "intent">;
    setOwn(merged, name, impose({ ...members, intent: value }, `${path}/${name}`, onUnknown));
  }
  return merged;
}

/** Merges the items of lists by their names, which identify them in most lists of built-in kinds. */
function mergeNamed(
  view: JsonValue | undefined,
  intent: readonly JsonValue[],
): JsonValue[] | undefined {
  if (!Array.isArray(view) || ![...view, ...intent].every(isNamedItem)) return undefined;
  const given = new Map(intent.filter(isNamedItem).map((item) => [item["name"], item] as const));
  const kept = view.filter(isNamedItem).map((item) => {
    const change = given.get(item["name"]);
    given.delete(item["name"]);
    if (change === undefined) return item;
    const merge = { target: item, intent: change, view: item, before: item, result: undefined };
    return impose(merge, "", () => undefined);
  });
  return [...kept, ...given.values()];
}

function isNamedItem(item: JsonValue): item is JsonObject {
  return isJsonObject(item) && typeof item["name"] === "string";
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? getOwn(value, name) : undefined;
}

/** Without the fields that every write changes. */
function plain(object: JsonObject): JsonObject {
  if (!isJsonObject(object["metadata"])) return object;
  const {
    managedFields: _m,
    resourceVersion: _v,
    generation: _g,
    ...metadata
  } = object["metadata"];
  return { ...object, metadata };
}
