import {
  getOwn,
  isJsonObject,
  jsonEquals,
  metadataOf,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";

type Path = readonly string[];

/** A field that another manager owns. */
export interface FieldConflict {
  readonly manager: string;
  readonly path: string;
}

/** Set by the server. */
const UNOWNED = new Set(["apiVersion", "kind"]);
const UNOWNED_METADATA = new Set([
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "managedFields",
]);

/**
 * The owners of the fields of a planned object, as in server-side apply. A dry run does not see earlier planned writes, so the
 * managed fields of its response do not have them. A list counts as one field.
 */
export class FieldOwnership {
  readonly #owners = new Map<string, Set<string>>();
  /** Maps that have owners as a whole. */
  readonly #atomic = new Set<string>();

  /** @param before the object on the server */
  constructor(before: JsonObject | undefined) {
    const { managedFields } = metadataOf(before ?? {}) as { readonly managedFields?: JsonObject[] };
    for (const entry of managedFields ?? []) {
      const { manager = "", operation = "", subresource = "", fieldsV1 } = entry;
      const id = `${String(manager)} ${String(operation)} ${String(subresource)}`;
      if (isJsonObject(fieldsV1)) {
        for (const path of managedPaths(fieldsV1)) this.#of(path).add(id);
      }
    }
    const fields = [...this.#owners.keys()];
    const outer = new Set(fields.flatMap((field) => outerOf(pathOf(field)).map(idOf)));
    for (const field of fields) {
      // Members of other maps have owners of their own.
      if (!outer.has(field) && isFilled(valueAt(before ?? {}, pathOf(field)))) {
        this.#atomic.add(field);
      }
    }
  }

  /** Records a write other than an apply: its manager alone owns the changed fields. */
  update(id: string, before: JsonObject, after: JsonObject): void {
    for (const path of fieldsOf(after)) {
      if (jsonEquals(valueAt(before, path), valueAt(after, path))) continue;
      this.#owners.set(this.#fieldOf(path), new Set([id]));
    }
    this.#forgetMissing(after);
  }

  /** Records an apply: its manager shares the fields that it did not change, and no longer owns those that it omits. */
  apply(
    id: string,
    intent: JsonObject,
    change: { readonly before: JsonObject; readonly after: JsonObject },
  ): void {
    const wanted = new Set<string>();
    for (const path of fieldsOf(intent)) {
      const field = this.#fieldOf(path);
      const isSame = jsonEquals(valueAt(change.before, path), valueAt(change.after, path));
      if (isSame) this.#of(pathOf(field)).add(id);
      else if (!wanted.has(field)) this.#owners.set(field, new Set([id]));
      wanted.add(field);
    }
    for (const [field, owners] of this.#owners) if (!wanted.has(field)) owners.delete(id);
    this.#forgetMissing(change.after);
  }

  /**
   * Returns the fields that an apply without force changes although other managers own them. Only the server compares the items
   * of lists.
   */
  conflicts(id: string, intent: JsonObject, object: JsonObject): FieldConflict[] {
    return fieldsOf(intent).flatMap((path) => {
      const wanted = valueAt(intent, path);
      if (Array.isArray(wanted) || jsonEquals(wanted, valueAt(object, path))) return [];
      const others = [...(this.#owners.get(this.#fieldOf(path)) ?? [])].filter(
        (owner) => owner !== id,
      );
      return others.map((owner) => ({
        manager: owner.split(" ")[0] ?? "",
        path: `.${path.join(".")}`,
      }));
    });
  }

  /** Returns the object without the fields that only this manager has applied and now omits. */
  withoutOmitted(id: string, intent: JsonObject, object: JsonObject): JsonObject {
    const wanted = new Set(fieldsOf(intent).map((path) => this.#fieldOf(path)));
    const omitted = [...this.#owners]
      .filter(([field, owners]) => owners.has(id) && owners.size === 1 && !wanted.has(field))
      .map(([field]) => pathOf(field));
    return omitted.reduce<JsonObject>((left, path) => {
      // A map remains while it has members of other managers.
      const isKept = isFilled(valueAt(left, path)) && !this.#atomic.has(idOf(path));
      return isKept ? left : withoutPath(left, path);
    }, object);
  }

  #of(path: Path): Set<string> {
    const owners = this.#owners.get(idOf(path)) ?? new Set();
    this.#owners.set(idOf(path), owners);
    return owners;
  }

  /** Returns the field that has owners: the path itself, or an atomic map around it. */
  #fieldOf(path: Path): string {
    return (
      outerOf(path)
        .map(idOf)
        .find((id) => this.#atomic.has(id)) ?? idOf(path)
    );
  }

  #forgetMissing(object: JsonObject): void {
    for (const field of this.#owners.keys()) {
      if (valueAt(object, pathOf(field)) === undefined) this.#owners.delete(field);
    }
  }
}

const idOf = (path: Path) => JSON.stringify(path);
const pathOf = (id: string) => JSON.parse(id) as string[];
/** The paths of the maps around a field. */
const outerOf = (path: Path) => path.slice(1).map((_name, at) => path.slice(0, at + 1));
const isFilled = (value: JsonValue | undefined) =>
  isJsonObject(value) && Object.keys(value).length > 0;

export function hasLists(object: JsonObject): boolean {
  return fieldsOf(object).some((path) => Array.isArray(valueAt(object, path)));
}

/** The paths of values and lists. */
function fieldsOf(object: JsonObject): Path[] {
  const { metadata, ...content } = object;
  const inContent = Object.entries(content).filter(([name]) => !UNOWNED.has(name));
  const inMetadata = isJsonObject(metadata)
    ? Object.entries(metadata).filter(([name]) => !UNOWNED_METADATA.has(name))
    : [];
  return [
    ...inContent.flatMap(([name, value]) => fieldsIn(value, [name])),
    ...inMetadata.flatMap(([name, value]) => fieldsIn(value, ["metadata", name])),
  ];
}

function fieldsIn(value: JsonValue | undefined, path: Path): Path[] {
  if (value === undefined) return [];
  if (!isJsonObject(value) || Object.keys(value).length === 0) return [path];
  return Object.entries(value).flatMap(([name, member]) => fieldsIn(member, [...path, name]));
}

/** The paths of `fieldsV1`. Items of lists are part of their list. */
function managedPaths(fields: JsonObject, path: Path = []): Path[] {
  return Object.entries(fields).flatMap(([key, inner]) => {
    if (!key.startsWith("f:")) return key === "." ? [] : [path];
    const own = [...path, key.slice(2)];
    const members = isJsonObject(inner) ? Object.keys(inner).filter((each) => each !== ".") : [];
    return members.length === 0 ? [own] : managedPaths(inner as JsonObject, own);
  });
}

function valueAt(object: JsonObject, path: Path): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of path) value = isJsonObject(value) ? getOwn(value, name) : undefined;
  return value;
}

/** Members that become empty are removed as well. */
function withoutPath(object: JsonObject, [name = "", ...rest]: Path): JsonObject {
  const value = getOwn(object, name);
  if (value === undefined) return object;
  const { [name]: _removed, ...others } = object;
  if (rest.length === 0 || !isJsonObject(value)) return rest.length === 0 ? others : object;
  const inner = withoutPath(value, rest);
  return Object.keys(inner).length === 0 ? others : { ...object, [name]: inner };
}
