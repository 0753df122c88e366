import { isIP } from "node:net";
import { compilePattern } from "./compile-pattern.ts";
import { parseRequestUri } from "./go-url.ts";
import { isMailAddress } from "./mail-address.ts";
import { parseGoDuration } from "./times.ts";
import { CelError } from "./value.ts";

const HEX = "[0-9a-fA-F]";
const ISBN_10 = /^\d{9}[\dX]$/;
const COLOR_PART = "[\\t\\n\\f\\r ]*(?:0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])[\\t\\n\\f\\r ]*";
const NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const HOSTNAME =
  "^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|" +
  "([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}" +
  "([a-zA-Z\\p{L}]){2,63})$";
const CREDIT_CARD =
  /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/;

function pattern(source: string): (value: string) => boolean {
  const whole = new RegExp(`^(?:${source})$`);
  return (value) => whole.test(value);
}

const uuid = (third: string, fourth: string) =>
  pattern(`${HEX}{8}-?${HEX}{4}-?${third}-?${fourth}-?${HEX}{12}`);

/** Formats of strings by name without hyphens, with the checks of kube-apiserver. */
const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  bsonobjectid: pattern(`${HEX}{24}`),
  byte: pattern("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
  cidr: (value) => {
    const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,6})$/.exec(value) ?? [];
    return isAddress(address) && Number(bits) <= (address.includes(":") ? 128 : 32);
  },
  creditcard: isCreditCard,
  date: isDate,
  datetime: (value) => {
    const [day = "", time = ""] = value.toLowerCase().split("t");
    const [, hours, minutes, seconds] = TIME.exec(time) ?? [];
    return isDate(day) && isUpTo("23", hours) && isUpTo("59", minutes) && isUpTo("59", seconds);
  },
  duration: isDuration,
  email: isMailAddress,
  hexcolor: pattern(`#?(?:${HEX}{3}|${HEX}{6})`),
  hostname: isHostname,
  // An IPv6 address that ends in an IPv4 address has both formats.
  ipv4: (value) => isAddress(value) && value.includes("."),
  ipv6: (value) => isAddress(value) && value.includes(":"),
  isbn: (value) => isIsbn10(value) || isIsbn13(value),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  k8slongname: (value) => value.length <= 253 && pattern(`${NAME}(\\.${NAME})*`)(value),
  k8sshortname: (value) => value.length <= 63 && pattern(NAME)(value),
  mac: isMac,
  password: () => true,
  rgbcolor: pattern(`rgb\\(${COLOR_PART},${COLOR_PART},${COLOR_PART}\\)`),
  ssn: (value) => value.length === 11 && pattern("\\d{3}[- ]?\\d{2}[- ]?\\d{4}")(value),
  uri: isRequestUri,
  uuid: uuid(`${HEX}{4}`, `${HEX}{4}`),
  uuid3: uuid(`3${HEX}{3}`, `${HEX}{4}`),
  uuid4: uuid(`4${HEX}{3}`, `[89abAB]${HEX}{3}`),
  uuid5: uuid(`5${HEX}{3}`, `[89abAB]${HEX}{3}`),
};

const TIME = /^(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)$/;

const isUpTo = (last: string, digits: string | undefined) => digits !== undefined && digits <= last;

/**
 * Node.js accepts zones as in `fe80::1%eth0`, the real server does not. The server accepts leading zeros as in `010.0.0.1`,
 * Node.js does not.
 */
const isAddress = (value: string) =>
  isIP(value.replaceAll(LEADING_ZEROS, "")) !== 0 && !value.includes("%");

const LEADING_ZEROS = /\b0+(?=\d+\.)|(?<=\.)0+(?=\d)/g;

function isDate(value: string): boolean {
  const parsed = /^\d{4}-\d\d-\d\d$/.test(value) ? new Date(value) : new Date(Number.NaN);
  // JavaScript takes 30 February as a day in March.
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(value);
}

function isCreditCard(value: string): boolean {
  const digits = value.replaceAll(/[^0-9]+/g, "");
  if (!CREDIT_CARD.test(digits)) return false;
  const sum = Array.from(digits)
    .toReversed()
    .map((digit, index) => Number(digit) * (index % 2 === 0 ? 1 : 2))
    .reduce((total, one) => total + (one > 9 ? one - 9 : one), 0);
  return sum % 10 === 0;
}

const withoutGaps = (value: string) => value.replaceAll(/[\t\n\f\r -]+/g, "");

function isIsbn10(value: string): boolean {
  const digits = withoutGaps(value);
  if (!ISBN_10.test(digits)) return false;
  const sum = Array.from(digits)
    .map((digit, index) => (index + 1) * (digit === "X" ? 10 : Number(digit)))
    .reduce((total, one) => total + one, 0);
  return sum % 11 === 0;
}

function isIsbn13(value: string): boolean {
  const digits = withoutGaps(value);
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = Array.from(digits)
    .map((digit, index) => Number(digit) * (index % 2 === 0 ? 1 : 3))
    .reduce((total, one) => total + one, 0);
  return sum % 10 === 0;
}

/** Addresses of 6, 8 or 20 bytes: with a separator for each byte, with dots for each two, or without. */
function isMac(value: string): boolean {
  if (value[2] === ":" || value[2] === "-") {
    return [6, 8, 20].some((bytes) =>
      pattern(`${HEX}{2}(?:${value[2]}${HEX}{2}){${bytes - 1}}`)(value),
    );
  }
  const dot = value[4] === "." ? "\\." : "";
  return [3, 4, 10].some((pairs) => pattern(`${HEX}{4}(?:${dot}${HEX}{4}){${pairs - 1}}`)(value));
}

function isHostname(value: string): boolean {
  const size = (text: string) => Buffer.byteLength(text);
  if (size(value) > 255 || !compilePattern(HOSTNAME).test(value)) return false;
  return value.split(".").every((part) => size(part) <= 63);
}

const SCALA_UNITS: readonly (readonly string[])[] = [
  ["ns", "nano"],
  ["us", "µs", "micro"],
  ["ms", "milli"],
  ["s", "sec"],
  ["m", "min"],
  ["h", "hr", "hour"],
  ["d", "day"],
  ["w", "wk", "week"],
];

/** A duration of Go, or a text with a number and a unit such as `2 minutes`. */
function isDuration(value: string): boolean {
  if (parseGoDuration(value) !== undefined) return true;
  const found = [...value.matchAll(/(?<!\d)(\d+)[\t\n\f\r ]*([A-Za-zµ]+)/g)];
  const isUnit = (unit: string) =>
    SCALA_UNITS.some((names) => names.includes(unit) || unit.startsWith(names.at(-1) ?? ""));
  return (
    found.every(([, number = ""]) => BigInt(number) < 2n ** 63n) &&
    found.some(([, , unit = ""]) => isUnit(unit.toLowerCase()))
  );
}

function isRequestUri(value: string): boolean {
  try {
    parseRequestUri(value);
    return true;
  } catch (error) {
    if (error instanceof CelError) return false;
    throw error;
  }
}

/** Returns true if a format of strings is checked. Hyphens in its name do not count. */
export const isCheckedFormat = (format: string): boolean =>
  Object.hasOwn(FORMATS, format.replaceAll("-", ""));

/** Returns whether a text has a format of schemas. A format that is not checked holds. */
export const hasFormat = (format: string, text: string): boolean =>
  !isCheckedFormat(format) || FORMATS[format.replaceAll("-", "")]?.(text) === true;
