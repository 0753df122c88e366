import { parseType, splitTypes, type CelType } from "../types/cel-type.ts";
import {
  CelList,
  CelMap,
  Duration,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from "../values/value.ts";

/** One overload of a function. */
export interface Overload {
  readonly name: string;
  /** Called as `receiver.name()`; the receiver is the first parameter. */
  readonly isMember: boolean;
  readonly parameters: readonly CelType[];
  readonly result: CelType;
  readonly call: (...values: readonly Value[]) => Value;
  /** The number of items or characters that the call compares, if their number may be large. */
  readonly work?: (...values: readonly Value[]) => number;
}

/** Parameters are contravariant, so that implementations state the types of their signature. */
type Implementation = (...values: never[]) => Value;

/** Adds the work of the calls to overloads. */
export const withWork = (
  work: (...values: never[]) => number,
  overloads: readonly Overload[],
): Overload[] => overloads.map((one) => ({ ...one, work: work as Overload["work"] & {} }));

/** Declares a function with a signature such as `string, int -> bool`. */
export const global = (name: string, signature: string, call: Implementation): Overload =>
  declare(name, false, signature, call);

/** Declares a function that is called on its first parameter. */
export const member = (name: string, signature: string, call: Implementation): Overload =>
  declare(name, true, signature, call);

function declare(
  name: string,
  isMember: boolean,
  signature: string,
  call: Implementation,
): Overload {
  const [parameters = "", result = ""] = signature.split("->");
  return {
    name,
    isMember,
    parameters: splitTypes(parameters).map(parseType),
    result: parseType(result),
    call: call as Overload["call"],
  };
}

/** Returns true if a value has the type, without its parameters: values of `dyn` are typed only here. */
export function accepts(type: CelType, value: Value): boolean {
  switch (type.kind) {
    case "bool":
      return typeof value === "boolean";
    case "bytes":
      return value instanceof Uint8Array;
    case "double":
      return typeof value === "number";
    case "duration":
      return value instanceof Duration;
    case "int":
      return typeof value === "bigint";
    case "null":
      return value === null;
    case "string":
      return typeof value === "string";
    case "timestamp":
      return value instanceof Timestamp;
    case "uint":
      return value instanceof Uint;
    case "list":
      return (
        value instanceof CelList &&
        (isAny(type.element) || value.items.every((item) => accepts(type.element, item)))
      );
    case "map":
    case "object":
      return value instanceof CelMap;
    case "type":
      return value instanceof TypeValue;
    case "opaque":
      return type.name === "optional_type"
        ? value instanceof Optional
        : value instanceof Opaque && value.type === type.name;
    default:
      return true;
  }
}

const isAny = ({ kind }: CelType) => kind === "dyn" || kind === "variable";
