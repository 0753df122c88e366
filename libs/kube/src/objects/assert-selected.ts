import { KonvergeError, type ResourceType } from "@konverge/core";
import type { DeleteCollectionOptions } from "../contract/call-options.ts";

/**
 * Rejects a deletion of all objects of a kind that is not confirmed, for example because a selector is undefined.
 * @throws KonvergeError `invalid_request`
 */
export function assertSelected(
  { resource }: ResourceType,
  { labelSelector = "", fieldSelector = "", all }: DeleteCollectionOptions,
): void {
  if (all === true || labelSelector !== "" || fieldSelector !== "") return;
  const detail = `deleteCollection of ${resource} has no labelSelector and no fieldSelector; set one, or all: true to delete all of them`;
  throw new KonvergeError("invalid_request", detail);
}
