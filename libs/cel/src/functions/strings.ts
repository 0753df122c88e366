import { CelError, CelList } from "../values/value.ts";
import { global, member, withWork, type Overload } from "./declaration.ts";
import { formatText } from "./format-text.ts";
import { ESCAPES } from "./quote-as-go.ts";

const SPACE = /[\t\n\v\f\r \u0085\p{Z}]/u;

const outOfRange = (index: bigint) => new CelError(`index out of range: ${index}`);

function charAt(text: string, index: bigint): string {
  const runes = Array.from(text);
  if (index < 0n || index > runes.length) throw outOfRange(index);
  return runes[Number(index)] ?? "";
}

function indexOf(text: string, part: string, offset = 0n): bigint {
  if (part === "") return offset;
  if (offset < 0n) throw outOfRange(offset);
  const runes = Array.from(text);
  const wanted = Array.from(part);
  for (let start = Number(offset); start <= runes.length - wanted.length; start++) {
    if (wanted.every((rune, index) => runes[start + index] === rune)) return BigInt(start);
  }
  return -1n;
}

function lastIndexOf(text: string, part: string, offset?: bigint): bigint {
  const runes = Array.from(text);
  const wanted = Array.from(part);
  if (part === "") return offset ?? BigInt(runes.length);
  if (offset !== undefined && offset < 0n) throw outOfRange(offset);
  if (offset !== undefined && offset >= runes.length) return -1n;
  const last = Math.min(Number(offset ?? runes.length - 1), runes.length - wanted.length);
  for (let start = last; start >= 0; start--) {
    if (wanted.every((rune, index) => runes[start + index] === rune)) return BigInt(start);
  }
  return -1n;
}

function substring(text: string, start: bigint, end?: bigint): string {
  const runes = Array.from(text);
  if (end !== undefined && start > end) {
    throw new CelError(`invalid substring range. start: ${start}, end: ${end}`);
  }
  for (const index of [start, end ?? start]) {
    if (index < 0n || index > runes.length) throw outOfRange(index);
  }
  return runes.slice(Number(start), end === undefined ? undefined : Number(end)).join("");
}

function replace(text: string, old: string, next: string, limit = -1n): string {
  if (limit < 0n) {
    return old === "" ? ["", ...Array.from(text), ""].join(next) : text.replaceAll(old, () => next);
  }
  const parts = old === "" ? ["", ...Array.from(text), ""] : text.split(old);
  const count = Number(limit);
  const head = parts.slice(0, count + 1).join(next);
  return [head, ...parts.slice(count + 1)].join(old);
}

function split(text: string, separator: string, limit = -1n): CelList {
  if (limit === 0n) return new CelList([]);
  const parts = separator === "" ? Array.from(text) : text.split(separator);
  if (limit < 0n || parts.length <= limit) return new CelList(parts);
  const head = parts.slice(0, Number(limit) - 1);
  return new CelList([...head, parts.slice(Number(limit) - 1).join(separator)]);
}

function join({ items }: CelList, separator = ""): string {
  const wrong = items.find((item) => typeof item !== "string");
  if (wrong !== undefined) throw new CelError(`join: invalid input: ${String(wrong)}`);
  return items.join(separator);
}

function trim(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && SPACE.test(text.charAt(start))) start++;
  while (end > start && SPACE.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

const quote = (text: string): string =>
  `"${Array.from(text.toWellFormed(), (rune) => ESCAPES[rune] ?? rune).join("")}"`;

/** Ten characters count as one item; in the worst case, each is compared with all of the other text. */
const searchWork = (a: string, b: string) => (a.length * b.length) / 100;

export const STRINGS: readonly Overload[] = [
  ...withWork(searchWork, [
    member("contains", "string, string -> bool", (a: string, b: string) => a.includes(b)),
    member("endsWith", "string, string -> bool", (a: string, b: string) => a.endsWith(b)),
    member("startsWith", "string, string -> bool", (a: string, b: string) => a.startsWith(b)),
    member("indexOf", "string, string -> int", (a: string, b: string) => indexOf(a, b)),
    member("indexOf", "string, string, int -> int", indexOf),
    member("lastIndexOf", "string, string -> int", (a: string, b: string) => lastIndexOf(a, b)),
    member("lastIndexOf", "string, string, int -> int", lastIndexOf),
  ]),
  member("charAt", "string, int -> string", charAt),
  member("lowerAscii", "string -> string", (a: string) =>
    a.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()),
  ),
  member("upperAscii", "string -> string", (a: string) =>
    a.replaceAll(/[a-z]/g, (letter) => letter.toUpperCase()),
  ),
  member("replace", "string, string, string -> string", (a: string, b: string, c: string) =>
    replace(a, b, c),
  ),
  member("replace", "string, string, string, int -> string", replace),
  member("split", "string, string -> list(string)", (a: string, b: string) => split(a, b)),
  member("split", "string, string, int -> list(string)", split),
  member("substring", "string, int -> string", (a: string, b: bigint) => substring(a, b)),
  member("substring", "string, int, int -> string", substring),
  member("trim", "string -> string", trim),
  member("format", "string, list(dyn) -> string", formatText),
  global("strings.quote", "string -> string", quote),
  member("join", "list(string) -> string", (list: CelList) => join(list)),
  member("join", "list(string), string -> string", join),
];
