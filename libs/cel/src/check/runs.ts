import { accepts, type Overload } from "../functions/declaration.ts";
import {
  CelError,
  CelList,
  CelMap,
  Optional,
  typeNameOf,
  Uint,
  type Value,
} from "../values/value.ts";
import { spend, type Compiled } from "./compiled.ts";

/** Returns the evaluation of a call, which selects the overload by the values. */
export function makeCall(
  name: string,
  candidates: readonly Overload[],
  args: readonly Compiled[],
): Compiled["run"] {
  return (frame) => {
    const values = args.map(({ run }) => run(frame));
    const overload = candidates.find(({ parameters }) =>
      parameters.every((type, index) => accepts(type, values[index] ?? null)),
    );
    if (overload === undefined) throw noSuchOverload(name, values);
    spend(frame.budget, overload.work?.(...values) ?? 0);
    const result = overload.call(...values);
    // A list that a function makes costs as much as one that a loop makes, and ten characters as much as an item.
    if (overload.result.kind === "list" && result instanceof CelList) {
      spend(frame.budget, result.items.length);
    }
    if (typeof result === "string") spend(frame.budget, result.length / 10);
    return result;
  };
}

/** Functions of which cel-go does not name the argument types. */
const UNNAMED: ReadonlySet<string> = new Set(
  "contains endsWith find findAll matches startsWith".split(" "),
);

function noSuchOverload(name: string, values: readonly Value[]): CelError {
  if (name === "_[_]") return new CelError(`no such key: ${String(values[1])}`);
  if (name === "size") return new CelError("no such overload: size");
  return new CelError(
    /^[a-z]/.test(name) && !UNNAMED.has(name)
      ? `no such overload: ${name}(${values.map(typeNameOf).join(", ")})`
      : "no such overload",
  );
}

/** Selects a field of an object, a map, or the value of an optional. */
export function select(from: Value, field: string): Value {
  if (from instanceof Optional) {
    if (from.value === undefined) return from;
    return new Optional(from.value instanceof CelMap ? from.value.get(field) : undefined);
  }
  const value = from instanceof CelMap ? from.get(field) : undefined;
  if (value === undefined) throw new CelError(`no such key: ${field}`);
  return value;
}

/** Makes the value of a literal. @throws CelError for an invalid key */
export function makeMap(entries: readonly (readonly [Value, Value])[]): CelMap {
  const pairs = entries.map(([key, value]) => {
    const isKey =
      typeof key === "string" ||
      typeof key === "bigint" ||
      typeof key === "boolean" ||
      key instanceof Uint;
    if (!isKey) throw new CelError("unsupported key type");
    return [key, value] as const;
  });
  return new CelMap(pairs);
}
