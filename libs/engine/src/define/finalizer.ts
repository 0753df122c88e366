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
 * Adds the finalizer under the object's version. Answers the object as it is then; it has none when it was deleted
 * meanwhile, since a terminating object takes no new ones.
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

/** Removes it under the object's version, so that the finalizers of others are kept. */
export async function releaseFinalizer(
  kube: AttemptKube,
  object: ApiObject,
  finalizer: string,
): Promise<ApiObject> {
  return kube.mutate(object, (draft) => {
    removeFinalizer(draft, finalizer);
  });
}
