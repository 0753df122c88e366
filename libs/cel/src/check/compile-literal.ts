import { compilePattern } from "../functions/compile-pattern.ts";
import type { ASTNode, ExpressionError } from "../syntax/parse-expression.ts";
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
import { parseDateTime, parseGoDuration } from "../values/times.ts";
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
  return of && { type: { kind: "type", of }, offset, run: () => value };
}

export function compileLiteral(literal: unknown, offset: number): Compiled {
  const value = toValue(literal);
  return { type: literalType(value), offset, run: () => value };
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

const LITERALS: Readonly<Record<string, (text: string) => boolean>> = {
  duration: (text) => parseGoDuration(text) !== undefined,
  timestamp: (text) => parseDateTime(text) !== undefined,
  matches: isPattern,
};

/** Returns the error of a constant duration, timestamp or pattern. */
export function literalIssue(name: string, arg: ASTNode | undefined): ExpressionError | undefined {
  if (arg?.op !== "value" || typeof arg.args !== "string") return undefined;
  const isValid = Object.hasOwn(LITERALS, name) ? LITERALS[name] : undefined;
  if (isValid === undefined || isValid(arg.args)) return undefined;
  return { message: `invalid ${name} argument`, offset: arg.start };
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
