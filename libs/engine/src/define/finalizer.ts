import type { ApiObject } from "@konverge/core";
import { addFinalizer, removeFinalizer } from "@konverge/kube";
import type { AttemptKube } from "./attempt-kube.ts";

/** The finalizer of a controller with `cleanup`: `konverge.dev/<controller>`. */
export function finalizerOf(controller: string): string {
  return `konverge.dev/${controller}`;
}

export function isTerminating({ metadata }: ApiObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export function hasFinalizer({ metadata }: ApiObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * Adds the finalizer with a `resourceVersion` precondition. Returns the current object. If the object was deleted in the
 * meantime, it has no finalizer, since a terminating object accepts no new ones.
 */
export async function holdWithFinalizer(
  kube: AttemptKube,
  object: ApiObject,
  finalizer: string,
): Promise<ApiObject> {
  return kube.mutate(object, (draft) => {
    if (!isTerminating(draft)) addFinalizer(draft, finalizer);
  });
}

/** Removes the finalizer with a `resourceVersion` precondition, so that the finalizers of other controllers stay. */
export async function releaseFinalizer(
  kube: AttemptKube,
  object: ApiObject,
  finalizer: string,
): Promise<ApiObject> {
  return kube.mutate(object, (draft) => {
    removeFinalizer(draft, finalizer);
  });
}
