import { isJsonObject, parseJson, type JsonObject, type JsonValue } from "@konverge/core";

/** One element of a field path: a member, or a list element by key, value or index. */
export type PathElement =
  | { readonly kind: "member"; readonly name: string }
  | { readonly kind: "element"; readonly selector: string };

/** Returns the leaves of a FieldsV1 tree. */
export function ownedPaths(fields: JsonValue | undefined): PathElement[][] {
  const found: PathElement[][] = [];
  walk(fields, [], found);
  return found;
}

function walk(
  fields: JsonValue | undefined,
  path: readonly PathElement[],
  found: PathElement[][],
): void {
  const entries = isJsonObject(fields) ? Object.entries(fields).filter(([key]) => key !== ".") : [];
  if (entries.length === 0) {
    // A map owned without its members (`.` alone) does not imply ownership of its content.
    const isBareMap = isJsonObject(fields) && "." in fields && path.at(-1)?.kind === "member";
    if (path.length > 0 && !isBareMap) found.push([...path]);
    return;
  }
  for (const [key, nested] of entries) {
    const element = toElement(key);
    if (element !== undefined) walk(nested, [...path, element], found);
  }
}

/** `f:name`, `k:{"key":"value"}`, `v:value`, `i:n`. */
function toElement(key: string): PathElement | undefined {
  const [prefix, rest] = [key.slice(0, 2), key.slice(2)];
  switch (prefix) {
    case "f:":
      return { kind: "member", name: rest };
    case "k:":
      return { kind: "element", selector: keySelector(rest) };
    case "v:":
    case "i:":
      return { kind: "element", selector: rest };
    default:
      return undefined;
  }
}

function keySelector(text: string): string {
  let keys: JsonObject;
  try {
    const value = parseJson(text);
    keys = isJsonObject(value) ? value : {};
  } catch (error) {
    // Only displayed, so an unknown format is shown as is.
    if (error instanceof SyntaxError) return text;
    throw error;
  }
  return Object.entries(keys)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(",");
}

/**
 * Formats a path as `spec.ports[name=web].port`. Selectors quote values, so they are omitted for sensitive kinds (P12).
 */
export function formatFieldPath(
  path: readonly PathElement[],
  { sensitive }: { readonly sensitive: boolean },
): string {
  let text = "";
  for (const element of path) {
    if (element.kind === "element") text += `[${sensitive ? "…" : element.selector}]`;
    else text += text === "" ? element.name : `.${element.name}`;
  }
  return text;
}

/** Returns the paths of all members that are not objects. */
export function memberPaths(
  value: JsonValue | undefined,
  path: readonly PathElement[] = [],
): PathElement[][] {
  if (!isJsonObject(value) || Object.keys(value).length === 0) return [[...path]];
  return Object.entries(value).flatMap(([name, member]) =>
    memberPaths(member, [...path, { kind: "member", name }]),
  );
}

/** Returns the paths of members that differ; a list that differs counts as one. */
export function changedPaths(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): PathElement[][] {
  const found: PathElement[][] = [];
  compare(before, after, [], found);
  return found;
}

function compare(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: readonly PathElement[],
  found: PathElement[][],
): void {
  if (isJsonObject(before) && isJsonObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(before[name], after[name], [...path, { kind: "member", name }], found);
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    found.push([...path]);
  }
}

/** Returns true if one path contains the other, or if they are equal. */
export function overlaps(left: readonly PathElement[], right: readonly PathElement[]): boolean {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const [a, b] = [left[index], right[index]];
    if (a?.kind === "member" && b?.kind === "member" && a.name === b.name) continue;
    if (a?.kind === "element" && b?.kind === "element" && a.selector === b.selector) continue;
    return false;
  }
  return true;
}
