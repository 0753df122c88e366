import { formatApiVersion, isKonvergeError, type ResourceType } from "@konverge/core";
import { isNotFound, isTooManyRequests } from "../errors/kube-api-error.ts";
import type { KubeClient } from "../contract/kube-client.ts";

/**
 * True once the API server answers for objects of the type, and its discovery knows the kind. A definition that has just been
 * installed is `Established` before either, and both come in any order, usually within a second.
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
    // 429: its storage is being made ready.
    if (isNotFound(error) || isTooManyRequests(error)) return false;
    if (isKonvergeError(error) && error.code === "not_found") return false;
    throw error;
  }
}
