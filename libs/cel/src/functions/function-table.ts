import { CONVERSIONS } from "./conversions.ts";
import type { Overload } from "./declaration.ts";
import { LISTS } from "./lists.ts";
import { OPERATORS } from "./operators.ts";
import { OPTIONALS } from "./optionals.ts";
import { REGULAR_EXPRESSIONS } from "./regular-expressions.ts";
import { STRINGS } from "./strings.ts";
import { TIMES } from "./times.ts";

const TABLE: ReadonlyMap<string, readonly Overload[]> = Map.groupBy(
  [
    ...OPERATORS,
    ...CONVERSIONS,
    ...TIMES,
    ...STRINGS,
    ...LISTS,
    ...REGULAR_EXPRESSIONS,
    ...OPTIONALS,
  ],
  ({ name }) => name,
);

/** Returns the overloads of a function, or undefined if there is none. */
export const findFunction = (name: string): readonly Overload[] | undefined => TABLE.get(name);
