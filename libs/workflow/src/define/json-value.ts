import { KonvergeError } from "@konverge/core";
import { isSecret } from "./seen-secrets.ts";

/**
 * `T` where it survives a round trip through JSON unchanged, else `never`: a Date would come back as text, a Map as `{}`, a
 * bigint not at all.
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

/** What a function must be so that its result can be recorded: anything, or what no function is. */
export type JsonSerializable<T> = [T] extends [Json<T>]
  ? unknown
  : { readonly "the result must be plain JSON: no Date, bigint, Map, function or class": never };

/** Deeper than any result should be, and shallower than what overflows the stack. */
const MAX_DEPTH = 100;

/**
 * Refuses what JSON cannot hold, where no compiler has. Members that are undefined are left out, as JSON does.
 * @param what names the value in the error
 * @throws KonvergeError `invalid_result`, with the place of the culprit; never with the value itself
 */
export function assertJson(value: unknown, what: string): void {
  const problem = findProblem(value, "", 0);
  if (problem === undefined) return;
  throw new KonvergeError(
    "invalid_result",
    `${what} cannot be recorded: ${problem}; make it plain JSON, for example an ISO text in place of a Date`,
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
    const detail = `${here} is a Secret, or of another kind that holds secrets, or a part of one`;
    throw new KonvergeError("invalid_result", `${detail}: return a reference, not what it holds`);
  }
  if (depth > MAX_DEPTH)
    return `${here} is nested more than ${MAX_DEPTH} levels deep, or in a circle`;
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
