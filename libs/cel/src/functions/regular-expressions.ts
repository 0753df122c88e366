import { CelList } from "../values/value.ts";
import { compilePattern } from "../values/compile-pattern.ts";
import { global, member, withWork, type Overload } from "./declaration.ts";

function find(text: string, pattern: string): string {
  const matcher = compilePattern(pattern).matcher(text);
  return matcher.find() ? (matcher.group() ?? "") : "";
}

function findAll(text: string, pattern: string, limit = -1n): CelList {
  const matcher = compilePattern(pattern).matcher(text);
  const found: string[] = [];
  let previousEnd = -1;
  while ((limit < 0n || found.length < limit) && matcher.find()) {
    const isEmpty = matcher.end() === matcher.start();
    // As in Go, an empty match right after another one does not count.
    if (!isEmpty || matcher.start() !== previousEnd) found.push(matcher.group() ?? "");
    previousEnd = matcher.end();
  }
  return new CelList(found);
}

const matches = (text: string, pattern: string) => compilePattern(pattern).test(text);

/** Ten characters count as one item. */
const tenths = (text: string) => text.length / 10;

export const REGULAR_EXPRESSIONS: readonly Overload[] = withWork(tenths, [
  global("matches", "string, string -> bool", matches),
  member("matches", "string, string -> bool", matches),
  member("find", "string, string -> string", find),
  member("findAll", "string, string -> list(string)", (text: string, pattern: string) =>
    findAll(text, pattern),
  ),
  member("findAll", "string, string, int -> list(string)", findAll),
]);
