import { formatDuration, formatTimestamp } from "../values/times.ts";
import { compare } from "../values/equals.ts";
import { formatFixed, formatScientific } from "../values/exact-decimal.ts";
import {
  CelError,
  CelList,
  CelMap,
  Duration,
  Timestamp,
  typeNameOf,
  TypeValue,
  Uint,
  type MapKey,
  type Value,
} from "../values/value.ts";
import { formatDouble } from "./conversions.ts";
import { readFormat, refusalOf } from "./format-clauses.ts";
import { quoteAsGo } from "./quote-as-go.ts";

const RAISED = Array.from("⁰¹²³⁴⁵⁶⁷⁸⁹");
const DEFAULT_PLACES = 6;
/** More digits are longer than the texts that a rule may make. */
const MOST_PLACES = 100_000;
const SPECIAL_NUMBERS: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity,
  "-Infinity": -Infinity,
};

/** Replaces the clauses of a format by values: `%s %d %f %e %b %x %X %o %%`. @throws CelError for a wrong clause */
export function formatText(format: string, { items }: CelList): string {
  let used = 0;
  let text = "";
  for (const part of readFormat(format)) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = items[used];
    if (value === undefined) throw new CelError(`index ${used} out of range`);
    used++;
    if (part.letter === "") throw new CelError("unexpected end of string");
    if (part.error !== undefined) throw new CelError(part.error);
    text += formatClause(part.letter, value, placesOf(part.precision));
  }
  return text;
}

function placesOf(precision = DEFAULT_PLACES): number {
  if (precision > MOST_PLACES) {
    throw new CelError("operation cancelled: actual cost limit exceeded");
  }
  return precision;
}

function formatClause(letter: string, value: Value, precision: number): string {
  const refusal = refusalOf(letter, typeNameOf(value));
  if (refusal !== undefined) throw new CelError(refusal);
  switch (letter) {
    case "s":
      return show(value);
    case "f":
      return fixed(doubleOf(value, letter), precision);
    case "e":
      return exponent(doubleOf(value, letter), precision);
    case "b":
      return typeof value === "boolean" ? String(Number(value)) : integerOf(value).toString(2);
    case "o":
      return integerOf(value).toString(8);
    case "x":
      return hex(value);
    case "X":
      return hex(value).toUpperCase();
    default:
      return integerOf(value).toString();
  }
}

/** Returns the number of a value that the clause accepts. */
function integerOf(value: Value): bigint {
  if (typeof value === "bigint") return value;
  if (value instanceof Uint) return value.value;
  throw new TypeError(`${typeNameOf(value)} is not an integer`);
}

function doubleOf(value: Value, letter: string): number {
  if (typeof value === "number") return value;
  const isSpecial = typeof value === "string" && Object.hasOwn(SPECIAL_NUMBERS, value);
  const special = isSpecial ? SPECIAL_NUMBERS[value] : undefined;
  if (special === undefined) throw new CelError(refusalOf(letter, typeNameOf(value), true));
  return special;
}

function hex(value: Value): string {
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return integerOf(value).toString(16);
}

const special = (value: number): string | undefined =>
  Number.isFinite(value) ? undefined : formatDouble(value).replace(/[+]?Inf$/, "∞");

/** As in cel-go, with commas between groups of three digits. */
function fixed(value: number, precision: number): string {
  const plain = special(value);
  if (plain !== undefined) return plain;
  const [whole = "", ...rest] = formatFixed(value, precision).split(".");
  return [whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ","), ...rest].join(".");
}

/** As in cel-go, the precision is the smallest width, and there are always six places. */
function exponent(value: number, width: number): string {
  const plain = special(value);
  if (plain !== undefined) return plain;
  const { digits, exponent: power } = formatScientific(value, DEFAULT_PLACES);
  const raised = String(Math.abs(power))
    .padStart(2, "0")
    .replaceAll(/\d/g, (digit) => RAISED[Number(digit)] ?? "");
  return `${digits}×10${power < 0 ? "⁻" : ""}${raised}`.padStart(width);
}

/** Formats a part of a list or a map, as a literal of CEL. */
function showPart(value: Value): string {
  if (typeof value === "string") return quoteAsGo(value);
  if (typeof value === "number") {
    return Number.isFinite(value)
      ? formatFixed(value, DEFAULT_PLACES)
      : quoteAsGo(formatDouble(value));
  }
  if (value instanceof Uint8Array) return `b${quoteAsGo(show(value))}`;
  if (value instanceof Timestamp) return `timestamp("${show(value)}")`;
  if (value instanceof Duration) return `duration("${show(value)}")`;
  if (refusalOf("s", typeNameOf(value)) === undefined) return show(value);
  throw new CelError(`error during formatting: no formatting function for ${typeNameOf(value)}`);
}

function showKey(key: MapKey): string {
  return typeof key === "string" ? quoteAsGo(key) : show(key);
}

/** Formats a value that the clause `%s` accepts. */
function show(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "number") return formatDouble(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return formatDuration(value.nanos);
  if (value instanceof TypeValue) return value.type;
  if (value instanceof CelList) return `[${value.items.map(showPart).join(", ")}]`;
  if (value instanceof CelMap) {
    const entries = value.entries().map(([key, one]) => [showKey(key), showPart(one)] as const);
    const sorted = entries.toSorted(([a], [b]) => compare(a, b));
    return `{${sorted.map((entry) => entry.join(":")).join(", ")}}`;
  }
  return String(value);
}
