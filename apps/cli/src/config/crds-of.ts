import { resourceId, type ApiObject, type ResourceType } from "@konverge/core";
import type { Config } from "@konverge/worker";
import type { Resource } from "@konverge/engine";

/** Returns the CRDs of all defined kinds of a configuration. */
export function crdsOf(
  config: Pick<Config, "controllers">,
): (ApiObject & { readonly [field: string]: unknown })[] {
  return resourcesOf(config).map((resource) => ({ ...resource.crd() }));
}

/** Returns all defined kinds of a configuration, each once. */
export function resourcesOf({ controllers }: Pick<Config, "controllers">): Resource[] {
  const types = new Map<string, ResourceType>(
    controllers.flatMap(({ sources }) => sources).map(({ type }) => [resourceId(type), type]),
  );
  return [...types.values()].filter((type): type is Resource => "crd" in type);
}
