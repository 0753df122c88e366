import { ADDRESSES } from "./addresses.ts";
import { CONVERSIONS } from "./conversions.ts";
import type { Overload } from "./declaration.ts";
import { LISTS } from "./lists.ts";
import { OPERATORS } from "./operators.ts";
import { OPTIONALS } from "./optionals.ts";
import { QUANTITIES } from "./quantities.ts";
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
    ...QUANTITIES,
    ...ADDRESSES,
  ],
  ({ name }) => name,
);

/** Returns the overloads of a function, or undefined if there is none. */
export const findFunction = (name: string): readonly Overload[] | undefined => TABLE.get(name);

/** Functions of kube-apiserver that are missing here. */
const MISSING: ReadonlySet<string> = new Set("url isURL semver isSemver".split(" "));

/** Returns true for a function that kube-apiserver has, but not the embedded API server. */
export const isMissingFunction = (name: string): boolean =>
  MISSING.has(name) || /^format\.\w+$/.test(name);
