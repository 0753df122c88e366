import { KonvergeError, resourceId, type ResourceType } from "@konverge/core";
import type { IndexedValue } from "@konverge/kube";
import type { Controller } from "../define/define-controller.ts";

/** Returns the functions of the indexes that a list names. @throws KonvergeError `invalid_request` for an unknown index */
export function indexedValues(
  { name: controller, sources }: Controller,
  type: ResourceType,
  wanted: Readonly<Record<string, string>>,
): IndexedValue[] {
  const indexes = sources
    .filter(
      (source) => resourceId(source.type) === resourceId(type) && source.type.keep === type.keep,
    )
    .map((source) => source.indexes ?? {});
  return Object.entries(wanted).map(([name, value]) => {
    const found = indexes.find((each) => Object.hasOwn(each, name))?.[name];
    if (found !== undefined) return { index: found, value };
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
