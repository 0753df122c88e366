import {
  cloneJson,
  defined,
  isJsonObject,
  jsonEquals,
  KonvergeError,
  parseJson,
  type ApiObject,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";

/**
 * Returns the fields of an object that a manager owns by server-side apply, as an object to apply; undefined if it owns none.
 * Applying the result as that manager changes nothing. As client-go's `ExtractInto`.
 */
export function extractOwned(
  object: ApiObject,
  { manager, subresource = "" }: { readonly manager: string; readonly subresource?: string },
): JsonObject | undefined {
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, managedFields } = metadata;
  if (managedFields === undefined) {
    const detail =
      "has no metadata.managedFields, so its owners are unknown; pass an object that was read";
    throw new KonvergeError("invalid_request", `${kind} ${name} ${detail}`);
  }
  const entry = managedFields.find(
    (each) =>
      each.manager === manager &&
      each.operation === "Apply" &&
      (each.subresource ?? "") === subresource,
  );
  if (entry?.fieldsV1 === undefined) return undefined;
  // The paths are those of the version that the manager has applied.
  if (entry.apiVersion !== apiVersion) {
    const detail = `was applied as ${entry.apiVersion ?? "an unknown version"}; read it in that version`;
    throw new KonvergeError("invalid_request", `${kind} ${name} ${detail}`);
  }
  const others = managedFields.flatMap(({ fieldsV1 }) =>
    fieldsV1 === undefined ? [] : [fieldsV1],
  );
  const owned = part(object as unknown as JsonObject, { own: entry.fieldsV1, all: others });
  const fields: JsonObject = isJsonObject(owned) ? owned : {};
  const meta = isJsonObject(fields["metadata"]) ? fields["metadata"] : {};
  return { ...fields, apiVersion, kind, metadata: { ...meta, name, ...defined({ namespace }) } };
}

/** FieldsV1 trees at one path. */
interface Trees {
  readonly own: JsonValue;
  /** Of all managers. */
  readonly all: readonly JsonValue[];
}

/** Returns the part of a value that a manager owns; undefined if the value has none of it. */
function part(value: JsonValue | undefined, trees: Trees): JsonValue | undefined {
  if (value === undefined) return undefined;
  const members = membersOf(trees.own);
  if (members.length === 0) return leaf(value, trees);
  if (Array.isArray(value)) return items(value, trees, members);
  return isJsonObject(value) ? map(value, trees, members) : cloneJson(value);
}

/**
 * A field that is owned without members. It is owned as a whole if it is a value, or an atomic map or list. If managers own
 * members of it, it is not atomic, and this manager has applied it empty.
 */
function leaf(value: JsonValue, { own, all }: Trees): JsonValue {
  const isGranular =
    (isJsonObject(own) && "." in own) || all.some((tree) => membersOf(tree).length > 0);
  if (!isGranular) return cloneJson(value);
  if (Array.isArray(value)) return [];
  return isJsonObject(value) ? {} : value;
}

function membersOf(tree: JsonValue): readonly string[] {
  return isJsonObject(tree) ? Object.keys(tree).filter((key) => key !== ".") : [];
}

function treesAt({ own, all }: Trees, key: string): Trees {
  const at = (tree: JsonValue) => (isJsonObject(tree) ? tree[key] : undefined);
  return {
    own: at(own) ?? {},
    all: all.map(at).filter((tree) => tree !== undefined),
  };
}

function map(value: JsonObject, trees: Trees, members: readonly string[]): JsonObject {
  const owned: JsonObject = {};
  for (const key of members) {
    if (!key.startsWith("f:")) continue;
    const name = key.slice(2);
    const member = part(Object.hasOwn(value, name) ? value[name] : undefined, treesAt(trees, key));
    if (member !== undefined) owned[name] = member;
  }
  return owned;
}

/** Items of a list in its own order, by their keys (`k:`), their values (`v:`) or their index (`i:`). */
function items(value: readonly JsonValue[], trees: Trees, members: readonly string[]): JsonValue[] {
  return value.flatMap((item, index) => {
    for (const selector of members) {
      const [prefix, text] = [selector.slice(0, 2), selector.slice(2)];
      if (prefix === "i:" && Number(text) === index) return [cloneJson(item)];
      if (prefix === "v:" && jsonEquals(parseJson(text), item)) return [cloneJson(item)];
      if (prefix !== "k:" || !isJsonObject(item)) continue;
      const keys = parseJson(text);
      if (!isJsonObject(keys) || !hasKeys(item, keys)) continue;
      const owned = part(item, treesAt(trees, selector));
      const fields = isJsonObject(owned) ? owned : {};
      // A key that the manager does not own has its default, such as the protocol of a port.
      return [Object.keys(keys).some((name) => name in fields) ? fields : { ...keys, ...fields }];
    }
    return [];
  });
}

function hasKeys(item: JsonObject, keys: JsonObject): boolean {
  return Object.entries(keys).every(([name, key]) => jsonEquals(item[name] ?? null, key));
}
