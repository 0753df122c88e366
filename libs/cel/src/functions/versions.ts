import { CelError, Opaque } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

/** A semantic version without its build metadata, which does not count in comparisons. */
interface Content {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly (bigint | string)[];
}
type Semver = Opaque<Content>;

const TYPE = "kubernetes.Semver";
const MAX_UINT = 18_446_744_073_709_551_615n;

const invalid = (what: string, text: string) => new CelError(`${what} ${JSON.stringify(text)}`);

function parseNumber(text: string, part: string): bigint {
  if (!/^\d*$/.test(text)) {
    throw invalid(`Invalid character(s) found in ${part.toLowerCase()} number`, text);
  }
  if (/^0./.test(text)) throw invalid(`${part} number must not contain leading zeroes`, text);
  return toUint(text);
}

function toUint(text: string): bigint {
  const fail = (why: string) =>
    new CelError(`strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`);
  if (text === "") throw fail("invalid syntax");
  const value = BigInt(text);
  if (value > MAX_UINT) throw fail("value out of range");
  return value;
}

function parsePrerelease(text: string): bigint | string {
  if (text === "") throw new CelError("Prerelease is empty");
  if (/^\d+$/.test(text)) {
    if (/^0./.test(text)) {
      throw invalid("Numeric PreRelease version must not contain leading zeroes", text);
    }
    return toUint(text);
  }
  if (!/^[\dA-Za-z-]+$/.test(text)) throw invalid("Invalid character(s) found in prerelease", text);
  return text;
}

function checkBuild(text: string): void {
  if (text === "") throw new CelError("Build meta data is empty");
  if (!/^[\dA-Za-z-]+$/.test(text)) {
    throw invalid("Invalid character(s) found in build meta data", text);
  }
}

/** Parses a semantic version. @throws CelError with the text of blang/semver */
function parse(text: string): Semver {
  if (text === "") throw new CelError("Version string empty");
  const [, major, minor, rest] = /^([^.]*)\.([^.]*)\.([^]*)$/.exec(text) ?? [];
  if (major === undefined || minor === undefined || rest === undefined) {
    throw new CelError("No Major.Minor.Patch elements found");
  }
  const numbers = [parseNumber(major, "Major"), parseNumber(minor, "Minor")] as const;
  const [, patch = "", pre, build] = /^([^+-]*)(?:-([^+]*))?(?:\+([^]*))?$/.exec(rest) ?? [];
  const last = parseNumber(patch, "Patch");
  const parts = pre?.split(".").map(parsePrerelease) ?? [];
  for (const part of build?.split(".") ?? []) checkBuild(part);
  return new Opaque(TYPE, { numbers: [...numbers, last] as const, pre: parts });
}

/** Accepts a leading `v`, leading zeros, and versions without minor or patch. */
function normalize(text: string): string {
  const [, major = "", minor, rest] =
    /^([^.]*)(?:\.([^.]*))?(?:\.([^]*))?$/.exec(text.replace(/^v/, "")) ?? [];
  const parts = [major, minor, rest].filter((part) => part !== undefined).map(withoutZeros);
  if (parts.length < 3 && /[+-]/.test(parts.at(-1) ?? "")) {
    throw new CelError("short version cannot contain PreRelease/Build meta data");
  }
  return [...parts, "0", "0"].slice(0, 3).join(".");
}

function withoutZeros(part: string): string {
  if (part.length < 2) return part;
  const rest = part.replace(/^0+/, "");
  return /^\d/.test(rest) ? rest : `0${rest}`;
}

const read = (text: string, isNormalized = false) => parse(isNormalized ? normalize(text) : text);

function isValid(text: string, isNormalized = false): boolean {
  try {
    read(text, isNormalized);
    return true;
  } catch (error) {
    if (error instanceof CelError) return false;
    throw error;
  }
}

function order({ content: a }: Semver, { content: b }: Semver): bigint {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n;
    if (number !== other) return number > other ? 1n : -1n;
  }
  // A version without a prerelease comes after those with one.
  if (a.pre.length === 0 || b.pre.length === 0) {
    return BigInt(Math.sign(b.pre.length) - Math.sign(a.pre.length));
  }
  for (let index = 0; index < Math.min(a.pre.length, b.pre.length); index++) {
    const one = orderPrereleases(a.pre[index] ?? 0n, b.pre[index] ?? 0n);
    if (one !== 0n) return one;
  }
  return BigInt(Math.sign(a.pre.length - b.pre.length));
}

/** Numbers come before words. */
function orderPrereleases(a: bigint | string, b: bigint | string): bigint {
  if (a === b) return 0n;
  if (typeof a === typeof b) return a > b ? 1n : -1n;
  return typeof a === "bigint" ? -1n : 1n;
}

const number =
  (index: 0 | 1 | 2) =>
  ({ content }: Semver) =>
    BigInt.asIntN(64, content.numbers[index]);

export const VERSIONS: readonly Overload[] = [
  global("semver", `string -> ${TYPE}`, (text: string) => read(text)),
  global("semver", `string, bool -> ${TYPE}`, read),
  global("isSemver", "string -> bool", (text: string) => isValid(text)),
  global("isSemver", "string, bool -> bool", isValid),
  member("major", `${TYPE} -> int`, number(0)),
  member("minor", `${TYPE} -> int`, number(1)),
  member("patch", `${TYPE} -> int`, number(2)),
  member("isGreaterThan", `${TYPE}, ${TYPE} -> bool`, (a: Semver, b: Semver) => order(a, b) > 0n),
  member("isLessThan", `${TYPE}, ${TYPE} -> bool`, (a: Semver, b: Semver) => order(a, b) < 0n),
  member("compareTo", `${TYPE}, ${TYPE} -> int`, order),
];
