import { KonvergeError, resourceId, type ApiObject, type ResourceType } from "@konverge/core";
import { indexValues, type IndexedValue } from "@konverge/kube";
import type { Controller } from "../define/define-controller.ts";

/** A value of an index, with the name of the index. */
export interface NamedIndexValue extends IndexedValue {
  readonly name: string;
}

/** Returns the functions of the indexes that a list names. @throws KonvergeError `invalid_request` for an unknown index */
export function indexedValues(
  { name: controller, sources }: Controller,
  type: ResourceType,
  wanted: Readonly<Record<string, string>>,
): NamedIndexValue[] {
  const indexes = sources
    .filter(
      (source) => resourceId(source.type) === resourceId(type) && source.type.keep === type.keep,
    )
    .map((source) => source.indexes ?? {});
  return Object.entries(wanted).map(([name, value]) => {
    const found = indexes.find((each) => Object.hasOwn(each, name))?.[name];
    if (found !== undefined) return { name, index: found, value };
    const known = indexes.flatMap((each) => Object.keys(each));
    const fix =
      known.length === 0
        ? `add indexes: { ${name}: (object) => ... } to its source`
        : `it has ${known.join(", ")}`;
    throw new KonvergeError(
      "invalid_request",
      `index "${name}" of ${type.kind} is not defined by controller "${controller}"; ${fix}`,
    );
  });
}

/**
 * Returns true if the object has the values of the indexes. As in a cache, an object for which an index function throws has no
 * value in that index; `onError` receives the error.
 */
export function hasIndexValues(
  object: ApiObject,
  wanted: readonly NamedIndexValue[],
  onError: (error: unknown, index: string) => void,
): boolean {
  return wanted.every(({ name, index, value }) => {
    try {
      return indexValues(index, object).includes(value);
    } catch (error) {
      onError(error, name);
      return false;
    }
  });
}
