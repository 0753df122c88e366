import type { ASTNode } from "../syntax/parse-expression.ts";
import type { CelType } from "../types/cel-type.ts";
import type { TypeBindings } from "../types/type-bindings.ts";
import { CelError, type Value } from "../values/value.ts";

/** The variables of an evaluation, innermost first. */
export interface Frame {
  readonly name: string;
  readonly value: Value | undefined;
  readonly parent: Frame | undefined;
  readonly budget: Budget;
}

/** Ends evaluations that take too long. */
interface Budget {
  stepsLeft: number;
}

/** @throws CelError if the evaluation has no steps left */
export function spend(budget: Budget, steps: number): void {
  budget.stepsLeft -= steps;
  if (budget.stepsLeft < 0) throw new CelError("operation cancelled: actual cost limit exceeded");
}

/** The declared variables, innermost first. */
export interface Scope {
  readonly name: string;
  readonly type: CelType;
  readonly parent: Scope | undefined;
}

/** One checked expression. */
export interface Compiled {
  readonly type: CelType;
  /** @throws CelError */
  readonly run: (frame: Frame) => Value;
  readonly offset: number;
  /** True for literals, and for what cel-go evaluates when it makes a program. */
  readonly isConstant?: true;
  /** The items of a literal list, or the keys and values of a literal map. */
  readonly parts?: readonly Compiled[];
}

/** What macros need of the compiler. */
export interface Checker {
  readonly bindings: TypeBindings;
  compile(node: ASTNode, scope: Scope): Compiled;
  /** Reports an error. */
  fail(offset: number, message: string): void;
  /** Reports a wrong type. */
  requireType(node: Compiled, type: CelType): void;
  /** Returns the type of a field of a type or of the value of an optional. */
  fieldType(of: CelType, field: string, offset: number): CelType;
  /** Calls a function with compiled arguments, of which a receiver is the first. */
  call(name: string, all: readonly Compiled[], offset: number, isMember: boolean): Compiled;
}

export const declareVariable = (scope: Scope | undefined, name: string, type: CelType): Scope => ({
  name,
  type,
  parent: scope,
});

export const findVariable = (scope: Scope | undefined, name: string): Scope | undefined =>
  scope === undefined || scope.name === name ? scope : findVariable(scope.parent, name);

export const bind = (frame: Frame, name: string, value: Value): Frame => ({
  name,
  value,
  parent: frame,
  budget: frame.budget,
});

export function readVariable(frame: Frame | undefined, name: string): Value | undefined {
  for (let one = frame; one !== undefined; one = one.parent) {
    if (one.name === name) return one.value;
  }
  return undefined;
}
