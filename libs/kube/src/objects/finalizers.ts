import type { ObjectMeta } from "@konverge/core";

/** A draft of any kind. */
interface Finalized {
  metadata: Pick<ObjectMeta, "finalizers">;
}

/**
 * Adds a finalizer to a draft: the object stays until it is removed again. Add it before creating anything outside the
 * cluster; a terminating object accepts none (422). Returns whether the list changed.
 */
export function addFinalizer(draft: Finalized, finalizer: string): boolean {
  const finalizers = (draft.metadata.finalizers ??= []);
  if (finalizers.includes(finalizer)) return false;
  finalizers.push(finalizer);
  return true;
}

/**
 * Removes a finalizer from a draft. Removing the last one of a terminating object deletes it. Returns whether the list
 * changed.
 */
export function removeFinalizer(draft: Finalized, finalizer: string): boolean {
  const { finalizers = [] } = draft.metadata;
  const rest = finalizers.filter((entry) => entry !== finalizer);
  if (rest.length === finalizers.length) return false;
  if (rest.length === 0) delete draft.metadata.finalizers;
  else draft.metadata.finalizers = rest;
  return true;
}
