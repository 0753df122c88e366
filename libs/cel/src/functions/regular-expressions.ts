import { CelError, CelList } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

const compiled = new Map<string, RegExp>();
/** Compiled patterns to keep; they are few, because most patterns are constants of rules. */
const KEPT_PATTERNS = 1000;

/**
 * Compiles a pattern of Go for JavaScript. Look-around and back-references do not exist in Go.
 * @throws CelError with Go's text, as far as the cause is known
 */
export function compilePattern(pattern: string): RegExp {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  const unsupported = /\(\?<?[=!]|\\[1-9]/.exec(pattern.replaceAll(/\\\\/g, ""));
  if (unsupported !== null) {
    throw new CelError(
      `error parsing regexp: invalid or unsupported Perl syntax: \`${unsupported[0]}\``,
    );
  }
  let made: RegExp;
  try {
    const [, letters = "", rest = pattern] = LEADING_FLAGS.exec(hoistFlags(pattern)) ?? [];
    made = parsePattern(toJavaScript(rest), letters);
  } catch {
    throw new CelError(`error parsing regexp: invalid pattern: \`${pattern}\``);
  }
  if (compiled.size >= KEPT_PATTERNS) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

const LEADING_FLAGS = /^\(\?([ims]+)\)([\s\S]*)$/;

/** Moves flags before the start of the text, which they do not affect: `^(?i)a` is `(?i)^a`. */
const hoistFlags = (pattern: string) => pattern.replace(/^(\^+)(\(\?[is]+\))/, "$2$1");

/** Escapes that mean something else, or nothing, in Go. */
const ONLY_IN_JAVASCRIPT = /\\(?![bBdDfnrsStvwWx])[A-Za-z]|\\x\{/;

function parsePattern(pattern: string, letters: string): RegExp {
  try {
    return new RegExp(pattern, `${letters}u`);
  } catch (error) {
    // Without the flag u, JavaScript takes a lone brace or bracket and a range such as `[\w-.]` literally, like Go.
    if (ONLY_IN_JAVASCRIPT.test(pattern.replaceAll("\\\\", ""))) throw error;
    return new RegExp(pattern, letters);
  }
}

const CLASSES: Readonly<Record<string, string>> = {
  alpha: "A-Za-z",
  digit: "0-9",
  alnum: "0-9A-Za-z",
  upper: "A-Z",
  lower: "a-z",
  space: "\\t\\n\\v\\f\\r ",
  punct: "!-\\/:-@\\[-`\\{-~",
  xdigit: "0-9A-Fa-f",
  word: "0-9A-Za-z_",
};

function toJavaScript(pattern: string): string {
  return pattern
    .replaceAll("(?P<", "(?<")
    .replaceAll(/\[:(\w+):\]/g, (all, name: string) => CLASSES[name] ?? all)
    .replaceAll(/\\([\s\S])/g, (all, letter: string) => {
      if (letter === "A") return "^";
      if (letter === "z") return "$";
      // With the flag u, JavaScript allows no other escapes.
      return /[\p{P}\p{S}]/u.test(letter) && !/[\^$\\.*+?()[\]{}|/-]/.test(letter) ? letter : all;
    })
    .replaceAll(/\\-/g, "\\u002d");
}

function findAll(text: string, pattern: string, limit = -1n): CelList {
  const expression = new RegExp(compilePattern(pattern), `${compilePattern(pattern).flags}g`);
  const found = Array.from(text.matchAll(expression), ([match]) => match);
  return new CelList(limit < 0n ? found : found.slice(0, Number(limit)));
}

const matches = (text: string, pattern: string) => compilePattern(pattern).test(text);

export const REGULAR_EXPRESSIONS: readonly Overload[] = [
  global("matches", "string, string -> bool", matches),
  member("matches", "string, string -> bool", matches),
  member(
    "find",
    "string, string -> string",
    (text: string, pattern: string) => compilePattern(pattern).exec(text)?.[0] ?? "",
  ),
  member("findAll", "string, string -> list(string)", (text: string, pattern: string) =>
    findAll(text, pattern),
  ),
  member("findAll", "string, string, int -> list(string)", findAll),
];
