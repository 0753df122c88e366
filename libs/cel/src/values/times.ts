import { Timestamp } from "./value.ts";

const NANOS_PER_MS = 1_000_000n;
const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: NANOS_PER_MS,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:?\d\d)$/;

/** Parses a date and time of RFC 3339. */
export function parseDateTime(text: string): Timestamp | undefined {
  const match = DATE_TIME.exec(text);
  if (match === null) return undefined;
  const [, year = "", month = "", day = "", hour = "", minute = "", second = ""] = match;
  const [fraction = "", zone = "Z"] = match.slice(7);
  const ms = Date.UTC(2000, Number(month) - 1, Number(day), Number(hour), Number(minute));
  const date = new Date(ms);
  date.setUTCFullYear(Number(year));
  date.setUTCSeconds(Number(second));
  const isReal =
    date.getUTCMonth() === Number(month) - 1 &&
    date.getUTCDate() === Number(day) &&
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    Number(second) < 60;
  if (!isReal) return undefined;
  const offsetMinutes = /^z$/i.test(zone)
    ? 0
    : Number(`${zone[0]}1`) * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2)));
  const nanos = BigInt(date.getTime() - offsetMinutes * 60_000) * NANOS_PER_MS;
  return new Timestamp(nanos + BigInt(fraction.padEnd(9, "0")), offsetMinutes);
}

/** Formats a time in its zone, with as many digits as needed. */
export function formatTimestamp({ nanos, offsetMinutes }: Timestamp): string {
  const seconds = floorDivide(nanos, 1_000_000_000n);
  const fraction = (nanos - seconds * 1_000_000_000n).toString().padStart(9, "0");
  const local = new Date((Number(seconds) + offsetMinutes * 60) * 1000);
  const text = local.toISOString().replace(/\.\d+Z$/, "");
  const digits = fraction.replace(/0+$/, "");
  return `${text}${digits === "" ? "" : `.${digits}`}${formatOffset(offsetMinutes)}`;
}

function formatOffset(minutes: number): string {
  if (minutes === 0) return "Z";
  const size = Math.abs(minutes);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** Parses a duration of Go, for example `1h30m` or `-1.5s`, to nanoseconds. */
export function parseGoDuration(text: string): bigint | undefined {
  const sign = text.startsWith("-") ? -1n : 1n;
  const rest = text.replace(/^[+-]/, "");
  if (rest === "0") return 0n;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let nanos = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of rest.matchAll(
    /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g,
  )) {
    const scale = UNITS[unit] ?? 0n;
    nanos += BigInt(whole || "0") * scale;
    nanos += (BigInt(fraction || "0") * scale) / 10n ** BigInt(fraction.length);
  }
  return BigInt.asIntN(64, sign * nanos) === sign * nanos ? sign * nanos : undefined;
}

/** Formats a duration in seconds, as CEL converts it to a string. */
export function formatDuration(nanos: bigint): string {
  const sign = nanos < 0n ? "-" : "";
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = (size % 1_000_000_000n).toString().padStart(9, "0").replace(/0+$/, "");
  return `${sign}${size / 1_000_000_000n}${fraction === "" ? "" : `.${fraction}`}s`;
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value < 0n && quotient * by !== value ? quotient - 1n : quotient;
}
