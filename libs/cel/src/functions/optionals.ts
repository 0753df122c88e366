import { CelError, Optional, type Value } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

function valueOf({ value }: Optional): Value {
  if (value === undefined) throw new CelError("optional.none() dereference");
  return value;
}

const isZero = (value: Value): boolean =>
  value === null ||
  value === false ||
  value === 0 ||
  value === 0n ||
  value === "" ||
  (typeof value === "object" &&
    (("size" in value && value.size === 0) ||
      ("items" in value && value.items.length === 0) ||
      ("length" in value && value.length === 0)));

export const OPTIONALS: readonly Overload[] = [
  global("optional.none", "-> optional(A)", () => new Optional()),
  global("optional.of", "A -> optional(A)", (value: Value) => new Optional(value)),
  global("optional.ofNonZeroValue", "A -> optional(A)", (value: Value) =>
    isZero(value) ? new Optional() : new Optional(value),
  ),
  member("hasValue", "optional(A) -> bool", ({ value }: Optional) => value !== undefined),
  member("value", "optional(A) -> A", valueOf),
  member("or", "optional(A), optional(A) -> optional(A)", (a: Optional, b: Optional) =>
    a.value === undefined ? b : a,
  ),
  member("orValue", "optional(A), A -> A", ({ value }: Optional, other: Value) =>
    value === undefined ? other : value,
  ),
];
