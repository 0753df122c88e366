import { compilePattern } from "../values/compile-pattern.ts";
import { CelError, type Value } from "../values/value.ts";
import type { Compiled, Frame } from "./compiled.ts";

/** Calls of these with one constant are evaluated once, before the first evaluation of the expression. */
const CONVERSIONS: ReadonlySet<string> = new Set(
  "bool bytes double duration dyn int string timestamp type uint".split(" "),
);
/** Functions whose second argument is a pattern, which is compiled once if it is constant. */
const PATTERNS: ReadonlySet<string> = new Set("find findAll matches".split(" "));

/** Constants read no variables, and their length is limited by that of the expression. */
const NO_VARIABLES: Frame = {
  name: "",
  value: undefined,
  parent: undefined,
  budget: { stepsLeft: Infinity },
};

/**
 * Evaluates the parts of a call that cel-go evaluates when it makes a program: conversions of constants, and constant
 * patterns. Other calls are returned as they are.
 * @throws CelError if that fails
 */
export function foldCall(name: string, call: Compiled, args: readonly Compiled[]): Compiled {
  const [first, second] = args;
  if (CONVERSIONS.has(name) && args.length === 1 && first?.isConstant === true) {
    const value = call.run(NO_VARIABLES);
    return constant(call, value);
  }
  if (PATTERNS.has(name) && second?.isConstant === true) {
    const pattern = second.run(NO_VARIABLES);
    if (typeof pattern === "string") compilePattern(pattern);
  }
  return call;
}

/** Returns a constant in the place of a call. */
export const constant = ({ type, offset }: Compiled, value: Value): Compiled => ({
  type,
  offset,
  isConstant: true,
  run: () => value,
});

/** Returns the text of an error of CEL. */
export function celMessage(error: unknown): string {
  if (error instanceof CelError) return error.message;
  throw error;
}
