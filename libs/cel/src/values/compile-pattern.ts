import { RE2JS, RE2JSException } from "re2js";
import { CelError } from "./value.ts";

const compiled = new Map<string, RE2JS>();
/** Compiled patterns to keep; they are few, because most patterns are constants of rules. */
const KEPT_PATTERNS = 1000;

/**
 * Compiles a pattern with the syntax and the semantics of Go's `regexp`. A match takes time linear in the text.
 * @throws CelError with Go's text
 */
export function compilePattern(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  let made: RE2JS;
  try {
    made = RE2JS.compile(pattern);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw new CelError(error.message, { cause: error });
  }
  if (compiled.size >= KEPT_PATTERNS) compiled.clear();
  compiled.set(pattern, made);
  return made;
}
