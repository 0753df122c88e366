import { findFunction } from "../functions/function-table.ts";
import { operatorOffset } from "../syntax/operator-offset.ts";
import { isParenthesized } from "../syntax/parentheses.ts";
import { isRelation, relationChain } from "../syntax/relation-chain.ts";
import type { ASTNode, ExpressionError } from "../syntax/parse-expression.ts";
import {
  BOOL,
  DYN,
  ERROR,
  formatType,
  isDynOrError,
  listOf,
  mapOf,
  optionalOf,
  valueOfOptional,
  type CelType,
} from "../types/cel-type.ts";
import { isReserved } from "../types/escape-name.ts";
import { mostGeneral, TypeBindings } from "../types/type-bindings.ts";
import { CelError, CelList, Optional } from "../values/value.ts";
import { checkFormat } from "./check-format.ts";
import { compileAnd, compileOr } from "./compile-logic.ts";
import {
  compileLiteral,
  compileTypeName,
  isBrokenLiteral,
  literalNumber,
} from "./compile-literal.ts";
import { findVariable, readVariable, type Checker, type Compiled, type Scope } from "./compiled.ts";
import { findMacro } from "./macros.ts";
import { celMessage, constant, foldCall } from "./constants.ts";
import { resolveOverloads } from "./resolve-overloads.ts";
import { makeCall, makeMap, select } from "./runs.ts";

const BINARY: Readonly<Record<string, string>> = {
  "==": "_==_",
  "!=": "_!=_",
  in: "@in",
  "+": "_+_",
  "-": "_-_",
  "*": "_*_",
  "/": "_/_",
  "%": "_%_",
  "<": "_<_",
  "<=": "_<=_",
  ">": "_>_",
  ">=": "_>=_",
};

/** Checks the types of an expression, with the rules and texts of cel-go, and prepares its evaluation. */
export class Compiler implements Checker {
  readonly errors: ExpressionError[] = [];
  /** Errors that are reported only if there are no others. */
  readonly #literalErrors: ExpressionError[] = [];
  /** Errors of constant parts, in the order in which cel-go evaluates them. */
  readonly constantErrors: string[] = [];
  readonly bindings: TypeBindings = new TypeBindings();
  /** Names of the used variables that are declared outside of the expression. */
  readonly used: Set<string> = new Set();
  readonly #globals: Scope;
  readonly #formatChecks: (() => ExpressionError | undefined)[] = [];
  #isFormatting = false;

  constructor(globals: Scope) {
    this.#globals = globals;
  }

  fail(offset: number, message: string): void {
    this.errors.push({ offset, message });
  }

  compile(node: ASTNode, scope: Scope = this.#globals): Compiled {
    const offset = operatorOffset(node);
    if (isRelation(node)) return this.#compileRelation(node, scope);
    switch (node.op) {
      case "value":
        return this.#compileLiteral(node.args, offset);
      case "id":
        return this.#compileName(node.args, scope, offset);
      case ".":
        return this.#compileSelect(node, scope, offset);
      case ".?":
        return this.#compileOptionalSelect(node, scope, offset);
      case "[]":
        return this.#compileCall("_[_]", node.args, { scope, offset });
      case "[?]":
        return this.#compileCall("_[?_]", node.args, { scope, offset });
      case "call":
        return this.#compileFunction(node, scope, offset);
      case "rcall":
        return this.#compileMember(node, scope, offset);
      case "list":
        return this.#compileList(node.args, scope, offset);
      case "map":
        return this.#compileMap(node.args, scope, offset);
      case "?:":
        if (node.args[1].op === "?:" && !isParenthesized(node.args[1], offset + 1)) {
          this.fail(offset, "Syntax error: a conditional between ? and : needs parentheses");
        }
        return this.#compileConditional(node.args, scope, offset);
      case "&&":
      case "||":
        return this.#compileLogic(node.op, node.args, scope, offset);
      case "-_":
        return this.#compileNegation(node, scope, offset);
      case "!_":
        return this.#compileCall("!_", [node.args], { scope, offset });
      default:
        return this.#compileCall(BINARY[node.op] ?? node.op, node.args, { scope, offset });
    }
  }

  /** Reports a wrong type. */
  requireType(node: Compiled, type: CelType): void {
    const found = this.bindings.resolve(node.type);
    if (!this.bindings.assign(found, type)) {
      this.fail(
        node.offset,
        `expected type '${formatType(type)}' but found '${formatType(this.bindings.resolve(found, true))}'`,
      );
    }
  }

  #compileLiteral(literal: unknown, offset: number): Compiled {
    if (typeof literal === "bigint" && BigInt.asIntN(64, literal) !== literal) {
      this.fail(offset, "invalid int literal");
    }
    return compileLiteral(literal, offset);
  }

  #compileName(name: string, scope: Scope, offset: number): Compiled {
    const variable = findVariable(scope, name);
    if (variable !== undefined) {
      if (findVariable(this.#globals, name) === variable) this.used.add(name);
      const run: Compiled["run"] = (frame) => {
        const value = readVariable(frame, name);
        if (value === undefined) throw new CelError(`no such attribute(s): ${name}`);
        return value;
      };
      return { type: variable.type, run, offset };
    }
    const type = compileTypeName(name, offset);
    if (type !== undefined) return type;
    this.fail(
      offset,
      isReserved(name)
        ? `reserved identifier: ${name}`
        : `undeclared reference to '${name}' (in container '')`,
    );
    return failed(offset);
  }

  #compileSelect(node: ASTNode & { op: "." }, scope: Scope, offset: number): Compiled {
    const [operand, field] = node.args;
    const qualified = qualifiedName(node);
    const isType = qualified !== undefined && findVariable(scope, rootOf(qualified)) === undefined;
    const type = isType ? compileTypeName(qualified, offset) : undefined;
    if (type !== undefined) return type;
    const from = this.compile(operand, scope);
    const fieldType = this.fieldType(from.type, field, offset);
    const isOptional = valueOfOptional(this.bindings.resolve(from.type)) !== undefined;
    return {
      type: isOptional ? optionalOf(fieldType) : fieldType,
      offset,
      run: (frame) => select(from.run(frame), field),
    };
  }

  #compileOptionalSelect(node: ASTNode & { op: ".?" }, scope: Scope, offset: number): Compiled {
    const [operand, field] = node.args;
    const from = this.compile(operand, scope);
    return {
      type: optionalOf(this.fieldType(from.type, field, offset)),
      offset,
      run: (frame) => {
        const value = from.run(frame);
        return select(value instanceof Optional ? value : new Optional(value), field);
      },
    };
  }

  /** Returns the type of a field of a type or of the value of an optional. */
  fieldType(of: CelType, field: string, offset: number): CelType {
    const resolved = this.bindings.resolve(of);
    const target = valueOfOptional(resolved) ?? resolved;
    switch (target.kind) {
      case "map":
        return target.value;
      case "object": {
        const type = target.fields.get(field);
        if (type !== undefined) return type;
        this.fail(offset, `undefined field '${field}'`);
        return ERROR;
      }
      case "variable":
        this.bindings.assign(DYN, target);
        return DYN;
      default:
        if (!isDynOrError(target)) {
          this.fail(offset, `type '${formatType(target)}' does not support field selection`);
        }
        return DYN;
    }
  }

  #compileFunction(node: ASTNode & { op: "call" }, scope: Scope, offset: number): Compiled {
    const [name, args] = node.args;
    const macro = findMacro(name, false, args.length);
    if (macro !== undefined) return macro(this, { receiver: undefined, args, scope, offset });
    return this.#compileCall(name, args, { scope, offset });
  }

  #compileMember(node: ASTNode & { op: "rcall" }, scope: Scope, offset: number): Compiled {
    const [name, receiver, args] = node.args;
    const macro = findMacro(name, true, args.length);
    if (macro !== undefined) return macro(this, { receiver, args, scope, offset });
    const prefix = qualifiedName(receiver);
    const full = prefix === undefined ? name : `${prefix}.${name}`;
    if (prefix !== undefined && findFunction(full) !== undefined) {
      return this.#compileCall(full, args, { scope, offset });
    }
    return this.#compileCall(name, args, { scope, offset, receiver });
  }

  #compileCall(
    name: string,
    args: readonly ASTNode[],
    at: { readonly scope: Scope; readonly offset: number; readonly receiver?: ASTNode },
  ): Compiled {
    const { scope, offset, receiver } = at;
    const wasFormatting = this.#isFormatting;
    this.#isFormatting = wasFormatting || name === "format";
    const before = this.constantErrors.length;
    const compiled = args.map((arg) => this.compile(arg, scope));
    this.#isFormatting = wasFormatting;
    const isMember = receiver !== undefined;
    // Types are checked in this order, but constants of a receiver are evaluated first.
    const later = this.constantErrors.splice(before);
    const all = isMember ? [this.compile(receiver, scope), ...compiled] : compiled;
    this.constantErrors.push(...later);
    const errors = this.constantErrors.length;
    const called = this.call(name, all, offset, isMember);
    if (name === "format") this.#checkFormat(receiver, args, compiled, offset);
    const isFailed = this.constantErrors.length > errors;
    const [literal] = args;
    if (literal !== undefined && isBrokenLiteral(name, literal, isFailed)) {
      const message = `invalid ${name} argument`;
      this.#literalErrors.push({ message, offset: literal.start });
    }
    return called;
  }

  /** Checks a literal format at the end, when the types of all variables are known. */
  #checkFormat(
    receiver: ASTNode | undefined,
    args: readonly ASTNode[],
    [list]: readonly Compiled[],
    offset: number,
  ): void {
    const format = receiver?.op === "value" ? receiver.args : undefined;
    const parts = args.length === 1 && args[0]?.op === "list" ? list?.parts : undefined;
    if (typeof format !== "string" || parts === undefined) return;
    this.#formatChecks.push(() =>
      checkFormat(format, parts, offset, (type) => this.bindings.resolve(type, true)),
    );
  }

  /** Returns the errors of the checked expression. */
  allErrors(): readonly ExpressionError[] {
    if (this.errors.length > 0) return this.errors;
    const formats = this.#formatChecks.map((check) => check());
    return [...this.#literalErrors, ...formats.filter((error) => error !== undefined)];
  }

  /** Calls a function with compiled arguments, of which a receiver is the first. */
  call(name: string, all: readonly Compiled[], offset: number, isMember: boolean): Compiled {
    const overloads = findFunction(name);
    if (overloads === undefined) {
      const message = `undeclared reference to '${name}' (in container '')`;
      this.errors.push({ offset, message, isUnknownFunction: true });
      return failed(offset);
    }
    const found = resolveOverloads(
      this.bindings,
      overloads.filter((overload) => overload.isMember === isMember),
      all.map(({ type }) => type),
    );
    if (found !== undefined) {
      return this.#fold(name, all, {
        type: found.type,
        offset,
        run: makeCall(name, found.candidates, all),
      });
    }
    const shown = all.map(({ type }) => formatType(this.bindings.resolve(type, true)));
    const signature = isMember
      ? `${shown[0]}.(${shown.slice(1).join(", ")})`
      : `(${shown.join(", ")})`;
    this.fail(offset, `found no matching overload for '${name}' applied to '${signature}'`);
    return failed(offset);
  }

  #compileNegation(node: ASTNode & { op: "-_" }, scope: Scope, offset: number): Compiled {
    const number = literalNumber(node);
    if (number !== undefined) return this.#compileLiteral(number, offset);
    return this.#compileCall("-_", [node.args], { scope, offset });
  }

  #fold(name: string, args: readonly Compiled[], call: Compiled): Compiled {
    try {
      return foldCall(name, call, args);
    } catch (error) {
      this.constantErrors.push(celMessage(error));
      return call;
    }
  }

  #compileRelation(node: Parameters<typeof relationChain>[0], scope: Scope): Compiled {
    const { first, rest } = relationChain(node);
    let left = this.compile(first, scope);
    for (const { op, offset, right } of rest) {
      const call = this.call(BINARY[op] ?? op, [left, this.compile(right, scope)], offset, false);
      // As in cel-go, the left side of `in []` is not evaluated.
      const isEmpty = op === "in" && right.op === "list" && right.args.length === 0;
      left = isEmpty ? constant(call, false) : call;
    }
    return left;
  }

  #compileConditional(args: readonly ASTNode[], scope: Scope, offset: number): Compiled {
    const parts = args.map((arg) => this.compile(arg, scope));
    const { type } = this.call("_?_:_", parts, offset, false);
    return {
      type,
      offset,
      run: (frame) => {
        const condition = parts[0]?.run(frame);
        if (typeof condition !== "boolean") throw new CelError("no such overload");
        return parts[condition ? 1 : 2]?.run(frame) ?? null;
      },
    };
  }

  #compileLogic(op: "&&" | "||", args: readonly ASTNode[], scope: Scope, offset: number): Compiled {
    const sides = args.map((arg) => this.compile(arg, scope));
    for (const side of sides) this.requireType(side, BOOL);
    const runs = sides.map(({ run }) => run);
    return { type: BOOL, offset, run: op === "&&" ? compileAnd(runs) : compileOr(runs) };
  }

  #compileList(args: readonly ASTNode[], scope: Scope, offset: number): Compiled {
    const items = args.map((arg) => this.compile(arg, scope));
    return {
      type: listOf(this.#join(items)),
      offset,
      parts: items,
      ...(items.every(({ isConstant }) => isConstant) ? { isConstant: true } : {}),
      run: (frame) => new CelList(items.map(({ run }) => run(frame))),
    };
  }

  #compileMap(
    args: readonly (readonly [ASTNode, ASTNode])[],
    scope: Scope,
    offset: number,
  ): Compiled {
    const entries = args.map(
      ([key, value]) => [this.compile(key, scope), this.compile(value, scope)] as const,
    );
    return {
      type: mapOf(
        this.#join(entries.map(([key]) => key)),
        this.#join(entries.map(([, value]) => value)),
      ),
      offset,
      parts: entries.flat(),
      ...(entries.flat().every(({ isConstant }) => isConstant) ? { isConstant: true } : {}),
      run: (frame) => makeMap(entries.map(([key, value]) => [key.run(frame), value.run(frame)])),
    };
  }

  /** Returns the common type of the parts of a literal, which have to agree except as arguments of `format`. */
  #join(parts: readonly Compiled[]): CelType {
    let joined: CelType | undefined;
    for (const { type, offset } of parts) {
      if (joined === undefined) joined = type;
      else if (this.bindings.assign(joined, type)) joined = mostGeneral(joined, type);
      else {
        const found = formatType(this.bindings.resolve(type, true));
        const expected = formatType(this.bindings.resolve(parts[0]?.type ?? DYN, true));
        if (!this.#isFormatting) {
          const message = `expected type '${expected}' but found '${found}'`;
          this.#literalErrors.push({ offset, message });
        }
        joined = DYN;
      }
    }
    return joined ?? this.bindings.fresh();
  }
}

const failed = (offset: number): Compiled => ({
  type: ERROR,
  offset,
  run: () => {
    throw new CelError("not compiled");
  },
});

/** Returns `a.b.c` for a chain of names. */
function qualifiedName(node: ASTNode): string | undefined {
  if (node.op === "id") return node.args;
  if (node.op !== ".") return undefined;
  const prefix = qualifiedName(node.args[0]);
  return prefix === undefined ? undefined : `${prefix}.${node.args[1]}`;
}

const rootOf = (name: string): string => name.split(".")[0] ?? name;
