import type { ApiObject, ResourceType } from "konverge";

/** The used part of a built-in kind. */
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
