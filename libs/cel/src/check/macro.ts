import type { ASTNode } from "../syntax/parse-expression.ts";
import type { Checker, Compiled, Scope } from "./compiled.ts";

/** A call of a macro. */
export interface MacroCall {
  readonly receiver: ASTNode | undefined;
  readonly args: readonly ASTNode[];
  readonly scope: Scope;
  readonly offset: number;
}
/** Checks a call of a macro, and prepares its evaluation. */
export type Macro = (compiler: Checker, call: MacroCall) => Compiled;

/** @throws TypeError if the table of macros declares fewer arguments */
export function argument({ args }: MacroCall, index: number): ASTNode {
  const arg = args[index];
  if (arg === undefined) throw new TypeError(`no argument ${index}`);
  return arg;
}

/** Returns the name of a variable that a macro declares. */
export function nameOf(compiler: Checker, node: ASTNode): string {
  if (node.op === "id") return node.args;
  compiler.fail(node.start, "argument must be a simple name");
  return "";
}
