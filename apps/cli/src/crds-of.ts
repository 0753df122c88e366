import type { ApiObject } from "@konverge/core";
import type { Config, Resource } from "@konverge/engine";

/** The CRDs of all kinds of a configuration that have a definition. */
export function crdsOf({
  controllers,
}: Config): (ApiObject & { readonly [field: string]: unknown })[] {
  const types = new Map(
    controllers
      .flatMap((controller) => [
        controller.for,
        ...controller.owns,
        ...controller.watches.map(({ type }) => type),
      ])
      .map((type) => [`${type.resource}.${type.group}`, type]),
  );
  return [...types.values()]
    .filter((type): type is Resource => "crd" in type)
    .map((type) => ({ ...type.crd() }));
}
