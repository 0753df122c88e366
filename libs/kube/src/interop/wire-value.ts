import { isRawNumber } from "@konverge/core";
import type { BuiltIn } from "../names/kinds.ts";

/** The static part of a class of client-node, with its fields in JavaScript and on the wire. */
interface ModelClass {
  readonly getAttributeTypeMap: () => readonly {
    readonly name: string;
    readonly baseName: string;
  }[];
}

/**
 * Returns plain JSON for a value with objects of client-node's classes, such as `V1Deployment`: times become text, and names
 * reserved in JavaScript (`_from`) get their name on the wire. A value without such objects is returned as it is.
 */
export function toWireValue<T>(value: T): T {
  return convert(value) as T;
}

/**
 * Returns an object of client-node's classes as plain JSON, with the type of Konverge's kinds:
 * `kube.replace(fromClientNode(deployment))`.
 */
export function fromClientNode<T extends object>(value: T): BuiltIn<T> {
  return toWireValue(value) as unknown as BuiltIn<T>;
}

function convert(value: unknown): unknown {
  if (typeof value !== "object" || value === null || isRawNumber(value)) return value;
  // A V1MicroTime has six digits of its own; metav1.Time has whole seconds.
  if (value instanceof Date) return value.toISOString().replace(/\.000Z$/, "Z");
  if (Array.isArray(value)) {
    const items = value.map(convert);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const names = wireNames(value.constructor);
  const entries = Object.entries(value).map(
    ([name, member]) => [names?.get(name) ?? name, convert(member)] as const,
  );
  const isSame =
    names === undefined &&
    entries.every(([name, member]) => member === (value as Record<string, unknown>)[name]);
  return isSame ? value : Object.fromEntries(entries.filter(([, member]) => member !== undefined));
}

const known = new WeakMap<object, ReadonlyMap<string, string>>();

function wireNames(type: unknown): ReadonlyMap<string, string> | undefined {
  if (!isModelClass(type)) return undefined;
  const names =
    known.get(type) ??
    new Map(type.getAttributeTypeMap().map(({ name, baseName }) => [name, baseName]));
  known.set(type, names);
  return names;
}

function isModelClass(type: unknown): type is ModelClass {
  return typeof type === "function" && "getAttributeTypeMap" in type;
}
