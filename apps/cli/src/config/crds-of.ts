import type { ApiObject, ResourceType } from "@konverge/core";
import type { Config } from "@konverge/worker";
import type { Resource } from "@konverge/engine";

/** The CRDs of all kinds of a configuration that have a definition. */
export function crdsOf(
  config: Pick<Config, "controllers">,
): (ApiObject & { readonly [field: string]: unknown })[] {
  return resourcesOf(config).map((resource) => ({ ...resource.crd() }));
}

/** All kinds of a configuration that have a definition, each once. */
export function resourcesOf({ controllers }: Pick<Config, "controllers">): Resource[] {
  const types = new Map<string, ResourceType>(
    controllers
      .flatMap((controller) => [
        controller.for,
        ...controller.owns,
        ...controller.watches.map(({ type }) => type),
      ])
      .map((type) => [`${type.resource}.${type.group}`, type]),
  );
  return [...types.values()].filter((type): type is Resource => "crd" in type);
}
