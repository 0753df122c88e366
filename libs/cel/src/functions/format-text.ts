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
  type Value,
} from "../values/value.ts";
import { formatDouble } from "./conversions.ts";

const RAISED = Array.from("⁰¹²³⁴⁵⁶⁷⁸⁹");
const DEFAULT_PLACES = 6;
/** More digits are longer than the texts that a rule may make. */
const MOST_PLACES = 100_000;
const CLAUSE = /%(?:\.(\d*))?([\s\S]?)/g;

/** Replaces the clauses of a format by values: `%s %d %f %e %b %x %X %o %%`. @throws CelError for a wrong clause */
export function formatText(format: string, { items }: CelList): string {
  let used = 0;
  return format.replaceAll(CLAUSE, (_clause, precision: string | undefined, letter: string) => {
    if (letter === "%") return "%";
    if (letter === "") throw new CelError("unexpected end of string");
    const value = items[used];
    if (value === undefined) throw new CelError(`index ${used} out of range`);
    used++;
    return formatClause(letter, value, placesOf(precision));
  });
}

function placesOf(precision = String(DEFAULT_PLACES)): number {
  if (Number(precision) > MOST_PLACES) {
    throw new CelError("operation cancelled: actual cost limit exceeded");
  }
  return Number(precision);
}

function formatClause(letter: string, value: Value, precision: number): string {
  switch (letter) {
    case "s":
      return show(value);
    case "d":
      return integerOf(value, "decimal").toString();
    case "f":
      return typeof value === "number" ? fixed(value, precision) : wrong(value, "fixed-point");
    case "e":
      return typeof value === "number"
        ? exponent(value, precision)
        : wrong(value, "scientific notation");
    case "b":
      return typeof value === "boolean"
        ? String(Number(value))
        : integerOf(value, "binary").toString(2);
    case "o":
      return integerOf(value, "octal").toString(8);
    case "x":
      return hex(value);
    case "X":
      return hex(value).toUpperCase();
    default:
      throw new CelError(
        `could not parse formatting clause: unrecognized formatting clause "${letter}"`,
      );
  }
}

function wrong(value: Value, what: string): never {
  throw new CelError(
    `error during formatting: ${what} clause can only be used on numbers, was given ${typeNameOf(value)}`,
  );
}

function integerOf(value: Value, what: string): bigint {
  if (typeof value === "bigint") return value;
  if (value instanceof Uint) return value.value;
  throw new CelError(
    `error during formatting: ${what} clause can only be used on integers, was given ${typeNameOf(value)}`,
  );
}

function hex(value: Value): string {
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return integerOf(value, "hex").toString(16);
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

/** Formats a part of a list or a map. */
function showPart(value: Value): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "number"
    ? (special(value) ?? formatFixed(value, DEFAULT_PLACES))
    : show(value);
}

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
    const entries = value.entries().toSorted(([a], [b]) => compare(a, b));
    return `{${entries.map(([key, one]) => `${showPart(key)}:${showPart(one)}`).join(", ")}}`;
  }
  if (typeof value === "object") {
    throw new CelError(
      `error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${typeNameOf(value)}`,
    );
  }
  return String(value);
}
