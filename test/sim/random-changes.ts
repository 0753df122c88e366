import * as fc from "fast-check";
import { cloneJson, type JsonObject, type JsonValue } from "@konverge/core";

/** A step of a change. Counted values depend on earlier reads. */
export type Step =
  | { readonly kind: "read" | "has" | "keys"; readonly path: Path }
  | { readonly kind: "delete" | "push" | "spread" | "count"; readonly path: Path }
  | { readonly kind: "set" | "default"; readonly path: Path; readonly value: JsonValue }
  | { readonly kind: "move"; readonly path: Path; readonly to: Path };
type Path = readonly string[];

/** Few names and values, so that changes overlap. */
const name = fc.constantFrom("a", "b", "c");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => ["spec", ...parts]);
const anyPath = fc.oneof(
  { weight: 12, arbitrary: path },
  { weight: 1, arbitrary: fc.constantFrom(["spec"], ["metadata"], ["metadata", "labels"], []) },
);
const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<JsonValue>(0, 1, "x", true, null),
    fc.array(fc.constantFrom<JsonValue>(1, "x", { a: 1 }), { maxLength: 2 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));
const look = fc.record({ kind: fc.constantFrom("read", "has", "keys"), path: anyPath });
const write = fc.oneof(
  fc.record({ kind: fc.constantFrom("delete", "push", "spread", "count", "count"), path }),
  fc.record({ kind: fc.constantFrom("set", "default"), path, value }),
  fc.record({ kind: fc.constant("move"), path, to: path }),
);
/** A change of an object whose reads determine its writes. */
export const changes = fc
  .tuple(fc.array(fc.oneof(look, write), { maxLength: 5 }), write)
  .map(([first, last]) => [...first, last]) as fc.Arbitrary<readonly Step[]>;
/** A change by another writer, of any existing field. */
export const foreignChanges = fc.array(write, { minLength: 1, maxLength: 2 }) as fc.Arbitrary<
  readonly Step[]
>;
export const specs = fc.dictionary(name, value, { minKeys: 1, maxKeys: 3 });

const isObject = (found: unknown): found is Record<string, unknown> =>
  typeof found === "object" && found !== null;

/** Applies the steps to a tracking draft or a plain object. */
export function runSteps(draft: JsonObject, program: readonly Step[]): void {
  let seen = 0;
  const see = (found: unknown): void => {
    // The API server treats an absent member as null, so no test can distinguish them.
    const text = isObject(found) ? (Array.isArray(found) ? "list" : "object") : String(found ?? "");
    for (const char of text) seen = (seen * 31 + char.charCodeAt(0)) % 1_000;
  };
  const find = (parts: Path): unknown =>
    parts.reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), draft);
  for (const one of program) {
    const parent = find(one.path.slice(0, -1));
    const last = one.path.at(-1) ?? "";
    if (one.kind === "read") see(find(one.path));
    else if (one.kind === "has") see(isObject(parent) && last in parent && parent[last] !== null);
    else if (one.kind === "keys") {
      const found = find(one.path);
      see(isObject(found) ? Object.keys(found).toSorted().join() : found);
    } else if (!isObject(parent) || Array.isArray(parent)) see("no parent");
    else if (one.kind === "set") parent[last] = cloneJson(one.value);
    else if (one.kind === "default") parent[last] ??= cloneJson(one.value);
    else if (one.kind === "delete") delete parent[last];
    else if (one.kind === "count") parent[last] = seen;
    else if (one.kind === "move") {
      const target = find(one.to.slice(0, -1));
      const isHome = isObject(target) && !Array.isArray(target);
      if (isHome) target[one.to.at(-1) ?? ""] = { moved: [parent[last] ?? null] };
    } else {
      const found = parent[last];
      if (Array.isArray(found)) found.push(seen);
      else if (one.kind === "spread" && isObject(found)) parent[last] = { ...found, c: seen };
    }
  }
}
