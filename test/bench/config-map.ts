import type { ApiObject, ResourceType } from "@konverge/core";

export const CONFIG_MAP: ResourceType<ApiObject & { data?: Record<string, string> }> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  scope: "Namespaced",
};
