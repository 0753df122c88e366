/** Escapes of one letter in Go and in CEL. */
export const ESCAPES: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};
const PRINTABLE = /[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** Quotes a text as Go's `%q`. */
export const quoteAsGo = (text: string): string =>
  `"${Array.from(text.toWellFormed(), quoteRune).join("")}"`;

function quoteRune(rune: string): string {
  const escape = ESCAPES[rune];
  if (escape !== undefined) return escape;
  if (PRINTABLE.test(rune)) return rune;
  const code = (rune.codePointAt(0) ?? 0).toString(16);
  if (code.length <= 2 && Number.parseInt(code, 16) < 0x80) return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}
