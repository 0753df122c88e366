import { isJsonObject, setOwn, type JsonObject } from "@konverge/core";

/**
 * A set of field paths, like structured-merge-diff's `fieldpath.Set`. A path is a series of elements in their FieldsV1
 * form: `f:name`, `k:{"name":"web"}` (item of a list that is a map), `v:"x"` (item of a set). Immutable.
 */
export interface FieldSet {
  /** Elements whose path ends here. */
  readonly members: ReadonlySet<string>;
  /** Elements with longer paths below them; no child is empty. */
  readonly children: ReadonlyMap<string, FieldSet>;
}

export const EMPTY_FIELDS: FieldSet = { members: new Set(), children: new Map() };

export const isEmptySet = ({ members, children }: FieldSet): boolean =>
  members.size === 0 && children.size === 0;

/** Collects paths during a traversal. */
export class FieldSetBuilder {
  readonly members: Set<string> = new Set();
  readonly children: Map<string, FieldSetBuilder> = new Map();

  /** Adds one path; the empty path is not a field. */
  add(path: readonly string[]): void {
    const last = path.at(-1);
    if (last === undefined) return;
    let node: FieldSetBuilder = this;
    for (const element of path.slice(0, -1)) {
      let next = node.children.get(element);
      if (next === undefined) {
        next = new FieldSetBuilder();
        node.children.set(element, next);
      }
      node = next;
    }
    node.members.add(last);
  }
}

export function fieldSetOf(paths: readonly (readonly string[])[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) builder.add(path);
  return builder;
}

export function union(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(left)) return right;
  if (isEmptySet(right)) return left;
  const children = new Map(left.children);
  for (const [element, set] of right.children) {
    const own = children.get(element);
    children.set(element, own === undefined ? set : union(own, set));
  }
  return { members: new Set([...left.members, ...right.members]), children };
}

/** Paths of `left` that are not in `right`. */
export function difference(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(right)) return left;
  return combine(left, right, {
    member: (element) => !right.members.has(element),
    child: (own, other) => (other === undefined ? own : difference(own, other)),
  });
}

/** Paths of `left` that are not in `right`, nor below a path of it. */
export function differenceDeep(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(right)) return left;
  const rest = combine(left, right, {
    member: (element) => !right.members.has(element),
    child: (own, other) => (other === undefined ? own : differenceDeep(own, other)),
  });
  const children = new Map([...rest.children].filter(([element]) => !right.members.has(element)));
  return { members: rest.members, children };
}

/** Paths in both. */
export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, right, {
    member: (element) => right.members.has(element),
    child: (own, other) => (other === undefined ? EMPTY_FIELDS : intersection(own, other)),
  });
}

function combine(
  left: FieldSet,
  right: FieldSet,
  keep: {
    readonly member: (element: string) => boolean;
    readonly child: (own: FieldSet, other: FieldSet | undefined) => FieldSet;
  },
): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [element, own] of left.children) {
    const rest = keep.child(own, right.children.get(element));
    if (!isEmptySet(rest)) children.set(element, rest);
  }
  return { members: new Set([...left.members].filter(keep.member)), children };
}

/** Formats every path for users: `.spec.containers[name="web"].image`, in order. */
export function listPaths(set: FieldSet): string[] {
  const paths: string[] = [];
  const walk = ({ members, children }: FieldSet, prefix: string) => {
    for (const element of members) paths.push(prefix + showElement(element));
    for (const [element, child] of children) walk(child, prefix + showElement(element));
  };
  walk(set, "");
  return paths.toSorted();
}

function showElement(element: string): string {
  const body = element.slice(2);
  switch (element[0]) {
    case "k": {
      const keys = Object.entries(JSON.parse(body) as JsonObject);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
    }
    case "v":
      return `[=${body}]`;
    case "i":
      return `[${body}]`;
    default:
      return `.${body}`;
  }
}

const decoded: WeakMap<JsonObject, FieldSet> = new WeakMap();

/** Parses the FieldsV1 form. Stored objects never change, so the result is cached. */
export function fromFieldsV1(fields: JsonObject): FieldSet {
  let set = decoded.get(fields);
  if (set === undefined) {
    set = readFields(fields);
    decoded.set(fields, set);
  }
  return set;
}

function readFields(fields: JsonObject): FieldSet {
  const members = new Set<string>();
  const children = new Map<string, FieldSet>();
  for (const [element, below] of Object.entries(fields)) {
    if (element === "." || !isJsonObject(below)) continue;
    const keys = Object.keys(below);
    if (keys.length === 0 || Object.hasOwn(below, ".")) members.add(element);
    const child = readFields(below);
    if (!isEmptySet(child)) children.set(element, child);
  }
  return { members, children };
}

/** Writes the FieldsV1 form, elements in order. */
export function toFieldsV1(set: FieldSet): JsonObject {
  const fields: JsonObject = {};
  for (const element of [...new Set([...set.members, ...set.children.keys()])].toSorted()) {
    const child = set.children.get(element);
    const below = child === undefined ? {} : toFieldsV1(child);
    setOwn(fields, element, child && set.members.has(element) ? { ".": {}, ...below } : below);
  }
  decoded.set(fields, set);
  return fields;
}
