import type { ApiObject, ResourceType } from "konverge";

/** A built-in kind, as far as the examples use it. */
export const ConfigMap: ResourceType<ApiObject & { data?: Record<string, string> }> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  scope: "Namespaced",
};

/** Data of the ConfigMap of this name; empty if it does not exist. */
export function dataOf(
  maps: readonly (ApiObject & { data?: Record<string, string> })[],
  name: string,
): Readonly<Record<string, string>> {
  return maps.find(({ metadata }) => metadata.name === name)?.data ?? {};
}
