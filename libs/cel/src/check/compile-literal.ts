import { compilePattern } from "../values/compile-pattern.ts";
import { isParenthesized } from "../syntax/parentheses.ts";
import type { ASTNode } from "../syntax/parse-expression.ts";
import {
  BOOL,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  parseType,
  STRING,
  type CelType,
} from "../types/cel-type.ts";
import { CelError, TypeValue, Uint, type Value } from "../values/value.ts";
import type { Compiled } from "./compiled.ts";

/** Names of types that expressions may compare with `type(x)`. */
const TYPE_NAMES: Readonly<Record<string, CelType>> = {
  ...Object.fromEntries(
    "bool bytes double int string uint".split(" ").map((name) => [name, parseType(name)]),
  ),
  list: listOf(DYN),
  map: mapOf(DYN, DYN),
  null_type: NULL,
  type: { kind: "type" },
  optional_type: parseType("optional(dyn)"),
  "google.protobuf.Timestamp": { kind: "timestamp" },
  "google.protobuf.Duration": { kind: "duration" },
};

export function compileTypeName(name: string, offset: number): Compiled | undefined {
  const of = Object.hasOwn(TYPE_NAMES, name) ? TYPE_NAMES[name] : undefined;
  const value = new TypeValue(name);
  return of && { type: { kind: "type", of }, offset, isConstant: true, run: () => value };
}

export function compileLiteral(literal: unknown, offset: number): Compiled {
  const value = toValue(literal);
  return { type: literalType(value), offset, isConstant: true, run: () => value };
}

function toValue(literal: unknown): Value {
  if (typeof literal === "object" && literal !== null && !(literal instanceof Uint8Array)) {
    return new Uint(BigInt(String((literal as { valueOf(): unknown }).valueOf())));
  }
  return literal as Value;
}

function literalType(value: Value): CelType {
  if (value === null) return NULL;
  switch (typeof value) {
    case "bigint":
      return INT;
    case "number":
      return { kind: "double" };
    case "boolean":
      return BOOL;
    case "string":
      return STRING;
    default:
      return { kind: value instanceof Uint ? "uint" : "bytes" };
  }
}

/** Returns the number of a literal such as `1` or `-1.5`, unlike that of `-(1.5)`, which is a call. */
export function literalNumber(node: ASTNode): bigint | number | undefined {
  if (node.op === "value") return toNumber(node.args);
  if (node.op !== "-_" || node.args.op !== "value") return undefined;
  const number = toNumber(node.args.args);
  return number === undefined || isParenthesized(node.args, node.start + 1) ? undefined : -number;
}

const toNumber = (literal: unknown) =>
  typeof literal === "bigint" || typeof literal === "number" ? literal : undefined;

const isLiteral = (node: ASTNode): boolean =>
  (node.op === "value" && typeof node.args === "string") || literalNumber(node) !== undefined;

/**
 * Returns true if the first argument of `duration`, `timestamp` or `matches` is a literal with an error, which is
 * reported at the literal. `isFailed` is true if the call has failed with constant arguments.
 */
export function isBrokenLiteral(name: string, arg: ASTNode, isFailed: boolean): boolean {
  if (name === "duration" || name === "timestamp") return isFailed && isLiteral(arg);
  const isText = arg.op === "value" && typeof arg.args === "string";
  return name === "matches" && isText && !isPattern(arg.args);
}

function isPattern(text: string): boolean {
  try {
    compilePattern(text);
    return true;
  } catch (error) {
    if (error instanceof CelError) return false;
    throw error;
  }
}
