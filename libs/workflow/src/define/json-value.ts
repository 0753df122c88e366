import { isEncoded, KonvergeError } from "@konverge/core";
import type { Seen } from "@konverge/kube";
import { isSecret } from "./seen-secrets.ts";

/**
 * `T` if it survives a round trip through JSON unchanged, else `never`: a Date would become text, a Map `{}`, and a bigint
 * throws.
 */
export type Json<T> = T extends string | number | boolean | null | undefined | void
  ? T
  : T extends bigint | symbol | ((...args: never[]) => unknown) | Date | RegExp | Error
    ? never
    : T extends
          | ReadonlyMap<unknown, unknown>
          | ReadonlySet<unknown>
          | Promise<unknown>
          | ArrayBuffer
          | ArrayBufferView
      ? never
      : T extends object
        ? { readonly [K in keyof T]: Json<T[K]> }
        : unknown extends T
          ? T
          : never;

/**
 * A constraint on functions whose result is recorded: met if the result is plain JSON. The types of Kubernetes objects are too
 * deep to be examined, so an object that was read is recognized by its mark.
 */
export type JsonSerializable<T> = [Extract<T, Seen | readonly Seen[]>] extends [never]
  ? [T] extends [Json<T>]
    ? unknown
    : NotJson
  : { readonly "objects are not recorded: return a reference or a part of it": never };

interface NotJson {
  readonly "the result must be plain JSON: no Date, bigint, Map, function or class": never;
}

/** Deeper than any result should be, and far from a stack overflow. */
const MAX_DEPTH = 100;

/**
 * Rejects values that JSON cannot represent, at run time. Undefined members are omitted, as in JSON.
 * @param what names the value in the error
 * @throws KonvergeError `invalid_result`, with the path of the invalid part; never with its value
 */
export function assertJson(value: unknown, what: string): void {
  if (isEncoded(value)) {
    const detail = `${what} begins with "konverge.dev/codec:", which is reserved for encoded values`;
    throw new KonvergeError("invalid_result", detail);
  }
  const problem = findProblem(value, "", 0);
  if (problem === undefined) return;
  throw new KonvergeError(
    "invalid_result",
    `${what} cannot be recorded: ${problem}; make it plain JSON, for example an ISO string instead of a Date`,
  );
}

function findProblem(value: unknown, path: string, depth: number): string | undefined {
  const here = path === "" ? "it" : path;
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : `${here} is ${value}`;
    case "bigint":
    case "symbol":
    case "function":
      return `${here} is a ${typeof value}`;
    case "object":
      break;
  }
  if (value === null) return undefined;
  if (isSecret(value)) {
    const detail = `${here} is, or is part of, a Secret or another sensitive kind`;
    throw new KonvergeError(
      "invalid_result",
      `${detail}; return a reference instead of its contents`,
    );
  }
  if (depth > MAX_DEPTH) return `${here} is circular or deeper than ${MAX_DEPTH} levels`;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const problem =
        item === undefined
          ? `${path}/${index} is undefined`
          : findProblem(item, `${path}/${index}`, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) {
    return `${here} is an instance of ${value.constructor?.name ?? "a class"}`;
  }
  for (const [name, member] of Object.entries(value)) {
    const problem = findProblem(member, `${path}/${name}`, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Copies a value as a round trip to Redis does. */
export function jsonCopy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
