import { Environment, ParseError, type ASTNode } from "@marcbachmann/cel-js";
import { MixedSigns, readSigns } from "./read-signs.ts";

export type { ASTNode } from "@marcbachmann/cel-js";

/** One error in an expression. */
export interface ExpressionError {
  readonly message: string;
  /** Offset in the expression, from 0. */
  readonly offset: number;
  /** True if a newer API server may know the function. */
  readonly isUnknownFunction?: boolean;
}

/** The result of parsing. */
export type Parsed =
  | { readonly ast: ASTNode; readonly error?: undefined }
  | { readonly error: ExpressionError };

// Only its parser is used: types and values are those of Kubernetes.
const parser = new Environment({ enableOptionalTypes: true });

/** Parses an expression. */
export function parseExpression(text: string): Parsed {
  try {
    return { ast: readSigns(parser.parse(text).ast) };
  } catch (error) {
    if (error instanceof MixedSigns) {
      return { error: { message: `Syntax error: ${error.message}`, offset: error.offset } };
    }
    if (!(error instanceof ParseError)) throw error;
    const { code, summary, range } = error;
    if (code === "invalid_macro_argument") {
      return { error: { message: "argument must be a simple name", offset: range?.start ?? 0 } };
    }
    return { error: { message: `Syntax error: ${summary}`, offset: range?.start ?? 0 } };
  }
}

/** Characters outside of ASCII have wide marks. */
const isWide = (rune: string): boolean => Buffer.byteLength(rune) > 1;

/** Formats errors as the API server does: with the position, and the line with a mark below. */
export function formatErrors(text: string, errors: readonly ExpressionError[]): string {
  return errors
    .toSorted((a, b) => a.offset - b.offset)
    .map(({ message, offset }) => {
      const before = text.slice(0, offset).split("\n");
      const line = text.split("\n")[before.length - 1] ?? "";
      const runes = Array.from(line);
      const column = Array.from(before.at(-1) ?? "").length;
      const dots = runes.slice(0, column).map((rune) => (isWide(rune) ? "．" : "."));
      const mark = isWide(runes[column] ?? "") ? "＾" : "^";
      return `ERROR: <input>:${before.length}:${column + 1}: ${message}\n | ${line}\n | ${dots.join("")}${mark}`;
    })
    .join("\n");
}
