import { readFormat, refusalOf } from "../functions/format-clauses.ts";
import type { ExpressionError } from "../syntax/parse-expression.ts";
import { typeNameOfType, type CelType } from "../types/cel-type.ts";
import type { Compiled } from "./compiled.ts";

type Resolve = (type: CelType) => CelType;

/**
 * Checks a format that is a literal against a list of arguments that is one, with the texts of cel-go. The other calls
 * fail only when they run. Returns the first error.
 */
export function checkFormat(
  format: string,
  args: readonly Compiled[],
  offset: number,
  resolve: Resolve,
): ExpressionError | undefined {
  let used = 0;
  for (const part of readFormat(format)) {
    if (typeof part === "string") continue;
    if (part.letter === "") return { offset, message: "unexpected end of string" };
    const arg = args[used];
    if (arg === undefined) return { offset, message: `index ${used} out of range` };
    used++;
    if (part.error !== undefined) return { offset, message: part.error };
    const error = checkArgument(part.letter, arg, resolve);
    if (error !== undefined) return error;
  }
  if (args.length <= used) return undefined;
  const counts = `(expected ${used}, got ${args.length})`;
  return { offset, message: `too many arguments supplied to string.format ${counts}` };
}

function checkArgument(
  letter: string,
  arg: Compiled,
  resolve: Resolve,
): ExpressionError | undefined {
  const type = resolve(arg.type);
  const message = type.kind === "dyn" ? undefined : refusalOf(letter, typeNameOfType(type));
  if (message !== undefined) return { offset: arg.offset, message };
  if (letter !== "s") return undefined;
  // The parts of a literal list or map have to be texts as well.
  for (const part of arg.parts ?? []) {
    const error = checkArgument(letter, part, resolve);
    if (error !== undefined) return error;
  }
  return undefined;
}
