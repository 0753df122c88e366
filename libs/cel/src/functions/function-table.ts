import { ADDRESSES } from "./addresses.ts";
import { CONVERSIONS } from "./conversions.ts";
import type { Overload } from "./declaration.ts";
import { LISTS } from "./lists.ts";
import { NAMED_FORMATS } from "./named-formats.ts";
import { OPERATORS } from "./operators.ts";
import { OPTIONALS } from "./optionals.ts";
import { QUANTITIES } from "./quantities.ts";
import { REGULAR_EXPRESSIONS } from "./regular-expressions.ts";
import { STRINGS } from "./strings.ts";
import { TIMES } from "./times.ts";
import { URLS } from "./urls.ts";
import { VERSIONS } from "./versions.ts";

const TABLE: ReadonlyMap<string, readonly Overload[]> = Map.groupBy(
  [
    ...OPERATORS,
    ...CONVERSIONS,
    ...TIMES,
    ...STRINGS,
    ...LISTS,
    ...REGULAR_EXPRESSIONS,
    ...OPTIONALS,
    ...QUANTITIES,
    ...ADDRESSES,
    ...NAMED_FORMATS,
    ...URLS,
    ...VERSIONS,
  ],
  ({ name }) => name,
);

/** Returns the overloads of a function, or undefined if there is none. */
export const findFunction = (name: string): readonly Overload[] | undefined => TABLE.get(name);
