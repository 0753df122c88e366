import type { ApiObject, ResourceType } from "konverge";

/** A built-in kind, as far as the examples use it. */
export const ConfigMap: ResourceType<ApiObject & { data?: Record<string, string> }> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  scope: "Namespaced",
};
