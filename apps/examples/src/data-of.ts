import type { ApiObject } from "konverge";

/** Data of the ConfigMap of this name; empty if it does not exist. */
export function dataOf(
  maps: readonly (ApiObject & { data?: Record<string, string> })[],
  name: string,
): Readonly<Record<string, string>> {
  return maps.find(({ metadata }) => metadata.name === name)?.data ?? {};
}
