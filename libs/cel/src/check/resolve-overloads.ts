import type { Overload } from "../functions/declaration.ts";
import { DYN, mapParts, type CelType } from "../types/cel-type.ts";
import { isExact, type TypeBindings } from "../types/type-bindings.ts";

/** Selects the overloads for types of arguments. Without a common type, the result is dynamic. */
export function resolveOverloads(
  bindings: TypeBindings,
  overloads: readonly Overload[],
  types: readonly CelType[],
): { readonly type: CelType; readonly candidates: readonly Overload[] } | undefined {
  let type: CelType | undefined;
  const candidates: Overload[] = [];
  for (const overload of overloads) {
    const fresh = instantiate(bindings, overload);
    if (!bindings.assignAll(types, fresh.parameters)) continue;
    candidates.push(overload);
    const result = bindings.resolve(fresh.result);
    if (type === undefined) type = result;
    else if (type.kind !== "dyn" && !isExact(result, type)) type = DYN;
  }
  return type && { type, candidates };
}

/** Replaces the variables of a signature by new ones. */
function instantiate(
  bindings: TypeBindings,
  { parameters, result }: Overload,
): Pick<Overload, "parameters" | "result"> {
  const variables = new Map<string, CelType>();
  const rename = (type: CelType): CelType => {
    if (type.kind !== "variable") return mapParts(type, rename);
    const known = variables.get(type.name) ?? bindings.fresh();
    variables.set(type.name, known);
    return known;
  };
  return { parameters: parameters.map(rename), result: rename(result) };
}
