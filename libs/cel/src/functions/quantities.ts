import { CelError, Opaque } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

type Quantity = Opaque<bigint>;

const TYPE = "kubernetes.Quantity";
const NANOS = 1_000_000_000n;
const DECIMAL = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/** As in Go, missing digits are 0. */
const QUANTITY = /^(?!$)([+-]?)(\d*(?:\.\d*)?)([a-zA-Z]*|[eE][+-]?\d+)$/;
const FORM =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Parses a quantity to billionths, the smallest unit; the rest is rounded away from zero. */
function parseQuantity(text: string): bigint | undefined {
  const [, sign = "", digits, suffix = ""] = QUANTITY.exec(text) ?? [];
  const scale = scaleOf(suffix);
  if (digits === undefined || scale === undefined) return undefined;
  const [whole = "", fraction = ""] = digits.split(".");
  const numerator = BigInt(`0${whole}${fraction}`) * scale.times * NANOS;
  const denominator = 10n ** BigInt(fraction.length) * scale.by;
  const nanos = (numerator + denominator - 1n) / denominator;
  return sign === "-" ? -nanos : nanos;
}

interface Scale {
  readonly times: bigint;
  readonly by: bigint;
}

function scaleOf(suffix: string): Scale | undefined {
  const binary = BINARY.indexOf(suffix);
  if (binary !== -1) return { times: 1024n ** BigInt(binary + 1), by: 1n };
  const decimal = DECIMAL.indexOf(suffix);
  if (decimal !== -1) return power((decimal - 3) * 3);
  const exponent = /^[eE]([+-]?\d{1,3})$/.exec(suffix)?.[1];
  return exponent === undefined ? undefined : power(Number(exponent));
}

const power = (exponent: number): Scale =>
  exponent < 0
    ? { times: 1n, by: 10n ** BigInt(-exponent) }
    : { times: 10n ** BigInt(exponent), by: 1n };

const quantity = (nanos: bigint) => new Opaque(TYPE, nanos);

function toQuantity(text: string): Quantity {
  const nanos = parseQuantity(text);
  if (nanos !== undefined) return quantity(nanos);
  throw new CelError(
    /^[+-]?[\d.]+[eEinumkKMGTP]+[-+]?\d*$/.test(text) ? "unable to parse quantity's suffix" : FORM,
  );
}

const isInteger = ({ content }: Quantity) =>
  content % NANOS === 0n && BigInt.asIntN(64, content / NANOS) === content / NANOS;

function toInteger(value: Quantity): bigint {
  if (!isInteger(value)) throw new CelError("cannot convert value to integer");
  return value.content / NANOS;
}

function order(a: Quantity, b: Quantity): bigint {
  if (a.content === b.content) return 0n;
  return a.content < b.content ? -1n : 1n;
}

export const QUANTITIES: readonly Overload[] = [
  global("quantity", `string -> ${TYPE}`, toQuantity),
  global("isQuantity", "string -> bool", (text: string) => parseQuantity(text) !== undefined),
  global("sign", `${TYPE} -> int`, (value: Quantity) => order(value, quantity(0n))),
  member(
    "isGreaterThan",
    `${TYPE}, ${TYPE} -> bool`,
    (a: Quantity, b: Quantity) => order(a, b) > 0n,
  ),
  member("isLessThan", `${TYPE}, ${TYPE} -> bool`, (a: Quantity, b: Quantity) => order(a, b) < 0n),
  member("compareTo", `${TYPE}, ${TYPE} -> int`, order),
  member(
    "asApproximateFloat",
    `${TYPE} -> double`,
    ({ content }: Quantity) => Number(content) / 1e9,
  ),
  member("asInteger", `${TYPE} -> int`, toInteger),
  member("isInteger", `${TYPE} -> bool`, isInteger),
  member("add", `${TYPE}, ${TYPE} -> ${TYPE}`, (a: Quantity, b: Quantity) =>
    quantity(a.content + b.content),
  ),
  member("add", `${TYPE}, int -> ${TYPE}`, (a: Quantity, b: bigint) =>
    quantity(a.content + b * NANOS),
  ),
  member("sub", `${TYPE}, ${TYPE} -> ${TYPE}`, (a: Quantity, b: Quantity) =>
    quantity(a.content - b.content),
  ),
  member("sub", `${TYPE}, int -> ${TYPE}`, (a: Quantity, b: bigint) =>
    quantity(a.content - b * NANOS),
  ),
];
