import {
  formatDuration,
  formatTimestamp,
  parseDateTime,
  parseGoDuration,
} from "../values/times.ts";
import {
  CelError,
  CelList,
  CelMap,
  Duration,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
  type Value,
} from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";
import { checkInt, checkTimestamp } from "./operators.ts";

const BOOLEANS: Readonly<Record<string, boolean>> = {
  "1": true,
  t: true,
  T: true,
  true: true,
  TRUE: true,
  True: true,
  "0": false,
  f: false,
  F: false,
  false: false,
  FALSE: false,
  False: false,
};

/** The exponent from which Go writes one. */
const LONGEST_PLAIN = 6;

const same = (value: Value) => value;
const refused = (from: string, to: string) =>
  new CelError(`type conversion error from '${from}' to '${to}'`);

function toBool(text: string): boolean {
  const value = Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : undefined;
  if (value === undefined) throw refused("string", "bool");
  return value;
}

function parseInteger(text: string, type: "int" | "uint"): bigint {
  const pattern = type === "int" ? /^[+-]?\d+$/ : /^\d+$/;
  if (!pattern.test(text)) throw refused("string", type);
  const value = BigInt(text.replace(/^\+/, ""));
  try {
    return type === "int" ? checkInt(value) : new Uint(value).value;
  } catch {
    throw refused("string", type);
  }
}

function toDouble(text: string): number {
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return Number.NaN;
  if (!/^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw refused("string", "double");
  return Number(text);
}

function truncate(value: number): bigint {
  if (!Number.isFinite(value) || Math.abs(value) >= 2 ** 63) throw new CelError("integer overflow");
  return BigInt(Math.trunc(value));
}

function truncateUint(value: number): Uint {
  if (!Number.isFinite(value) || value < 0 || value >= 2 ** 64) {
    throw new CelError("unsigned integer overflow");
  }
  return new Uint(BigInt(Math.trunc(value)));
}

/** Formats a double as Go's `%g` with the shortest digits. */
export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (Object.is(value, -0)) return "-0";
  const [digits = "", power = "+0"] = value.toExponential().split("e");
  if (Number(power) >= -4 && Number(power) < LONGEST_PLAIN) return String(value);
  return `${digits}e${power.slice(0, 1)}${power.slice(1).padStart(2, "0")}`;
}

function toText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CelError("invalid UTF-8 in bytes, cannot convert to string");
  }
}

function toTimestamp(text: string): Timestamp {
  const time = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(text)
    ? parseDateTime(text)
    : undefined;
  if (time === undefined) throw refused("string", "google.protobuf.Timestamp");
  return checkTimestamp(time.nanos, time.offsetMinutes);
}

function toDuration(text: string): Duration {
  const nanos = parseGoDuration(text);
  if (nanos === undefined) throw refused("string", "google.protobuf.Duration");
  return new Duration(nanos);
}

const seconds = (nanos: bigint): bigint => {
  const whole = nanos / 1_000_000_000n;
  return nanos < 0n && whole * 1_000_000_000n !== nanos ? whole - 1n : whole;
};

const sizeOf = (value: CelList | CelMap | Uint8Array | string): bigint => {
  if (typeof value === "string") return BigInt(Array.from(value).length);
  if (value instanceof CelList) return BigInt(value.items.length);
  return BigInt(value instanceof CelMap ? value.size : value.length);
};
const SIZED = ["bytes", "list(A)", "map(A, B)", "string"];

export const CONVERSIONS: readonly Overload[] = [
  ...SIZED.flatMap((type) => [
    global("size", `${type} -> int`, sizeOf),
    member("size", `${type} -> int`, sizeOf),
  ]),
  global("type", "A -> type(A)", (value: Value) => new TypeValue(typeNameOf(value))),
  global("dyn", "A -> dyn", same),
  global("bool", "bool -> bool", same),
  global("bool", "string -> bool", toBool),
  global("bytes", "bytes -> bytes", same),
  global("bytes", "string -> bytes", (text: string) => new TextEncoder().encode(text)),
  global("double", "double -> double", same),
  global("double", "int -> double", (value: bigint) => Number(value)),
  global("double", "string -> double", toDouble),
  global("double", "uint -> double", ({ value }: Uint) => Number(value)),
  global("duration", "duration -> duration", same),
  global("duration", "int -> duration", () => {
    throw refused("int", "google.protobuf.Duration");
  }),
  global("duration", "string -> duration", toDuration),
  global("int", "int -> int", same),
  global("int", "double -> int", truncate),
  global("int", "duration -> int", ({ nanos }: Duration) => nanos),
  global("int", "string -> int", (text: string) => parseInteger(text, "int")),
  global("int", "timestamp -> int", ({ nanos }: Timestamp) => seconds(nanos)),
  global("int", "uint -> int", ({ value }: Uint) => checkInt(value)),
  global("string", "string -> string", same),
  global("string", "bool -> string", String),
  global("string", "bytes -> string", toText),
  global("string", "double -> string", formatDouble),
  global("string", "duration -> string", ({ nanos }: Duration) => formatDuration(nanos)),
  global("string", "int -> string", String),
  global("string", "timestamp -> string", formatTimestamp),
  global("string", "uint -> string", ({ value }: Uint) => String(value)),
  global("timestamp", "timestamp -> timestamp", same),
  global("timestamp", "int -> timestamp", (value: bigint) =>
    checkTimestamp(value * 1_000_000_000n),
  ),
  global("timestamp", "string -> timestamp", toTimestamp),
  global("uint", "uint -> uint", same),
  global("uint", "double -> uint", truncateUint),
  global("uint", "int -> uint", (value: bigint) => new Uint(value)),
  global("uint", "string -> uint", (text: string) => new Uint(parseInteger(text, "uint"))),
];
