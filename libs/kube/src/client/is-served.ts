import { formatApiVersion, isKonvergeError, type ResourceType } from "@konverge/core";
import { isNotFound, isTooManyRequests } from "../errors/error-predicates.ts";
import type { KubeClient } from "../contract/kube-client.ts";

/**
 * Returns true once the API server serves the type's objects and discovery lists its kind. A new definition is
 * `Established` before both; they follow in any order, usually within a second.
 */
export async function isServed(
  client: Pick<KubeClient, "list" | "resolveType">,
  type: ResourceType,
): Promise<boolean> {
  try {
    await client.list(type, { limit: 1, resourceVersion: "0" });
    await client.resolveType(formatApiVersion(type.group, type.version), type.kind);
    return true;
  } catch (error) {
    // 429: the storage is still being initialized.
    if (isNotFound(error) || isTooManyRequests(error)) return false;
    if (isKonvergeError(error) && error.code === "not_found") return false;
    throw error;
  }
}
