import {
  getOwn,
  isJsonObject,
  jsonEquals,
  parseJson,
  type ApiObject,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";

/** Fields of the metadata that no manager owns. */
const UNOWNED: ReadonlySet<string> = new Set(["name", "namespace", "uid", "resourceVersion"]);

/**
 * Returns true if the last server-side apply of a manager set every field of the intent, and no other writer has changed one
 * since: a writer that changes a field takes its ownership. Values are not compared, since the server may store them in
 * another form, such as `1` for `1000m`.
 */
export function ownsFields(object: ApiObject, intent: JsonObject, manager: string): boolean {
  const entry = object.metadata.managedFields?.find(
    (each) => each.manager === manager && each.operation === "Apply" && !each.subresource,
  );
  if (entry?.fieldsV1 === undefined) return false;
  const { apiVersion: _, kind: __, metadata, ...rest } = intent;
  const owned = isJsonObject(metadata)
    ? Object.fromEntries(Object.entries(metadata).filter(([name]) => !UNOWNED.has(name)))
    : {};
  return covers({ ...rest, metadata: owned }, entry.fieldsV1);
}

function covers(value: JsonValue, fields: JsonValue | undefined): boolean {
  if (!isJsonObject(fields)) return false;
  // A list or map without members in the set is owned as a whole.
  if (Object.keys(fields).length === 0) return true;
  if (Array.isArray(value)) return value.every((item) => coversItem(item, fields));
  if (!isJsonObject(value)) return true;
  return Object.entries(value).every(
    ([name, member]) => member === null || covers(member, getOwn(fields, `f:${name}`)),
  );
}

function coversItem(item: JsonValue, fields: JsonObject): boolean {
  if (!isJsonObject(item)) return Object.hasOwn(fields, `v:${JSON.stringify(item)}`);
  const found = Object.entries(fields).find(([key]) => key.startsWith("k:") && isKeyOf(key, item));
  return found !== undefined && covers(item, found[1]);
}

/** A key may have a part that the intent omits because the server has a default, such as the protocol of a port. */
function isKeyOf(key: string, item: JsonObject): boolean {
  const parts = parseJson(key.slice(2));
  return (
    isJsonObject(parts) &&
    Object.entries(parts).every(([name, value]) => {
      const own = getOwn(item, name);
      return own === undefined || jsonEquals(own, value);
    })
  );
}
