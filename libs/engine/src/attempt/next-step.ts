import type { ApiObject } from "@konverge/core";
import type { Attempt } from "../access/attempt.ts";
import type { AttemptKube } from "../define/attempt-kube.ts";
import {
  hasFinalizer,
  holdWithFinalizer,
  isTerminating,
  releaseFinalizer,
} from "../define/finalizer.ts";
import type { Handler } from "../define/middleware.ts";

export interface Step {
  readonly handler: "reconcile" | "cleanup";
  readonly run: Handler;
  readonly object: ApiObject;
}

/** Sets or removes the controller's finalizer as required, then selects the handler. Undefined if there is nothing to do. */
export async function nextStep(
  object: ApiObject,
  { runtime, log }: Attempt,
  kube: AttemptKube,
): Promise<Step | undefined> {
  const {
    controller: { finalizer, abandonsCleanup, reconcile, cleanup },
  } = runtime;
  const isHeld = hasFinalizer(object, finalizer);
  if (cleanup !== undefined) {
    const held =
      isHeld || isTerminating(object) ? object : await holdWithFinalizer(kube, object, finalizer);
    if (!isTerminating(held)) return { handler: "reconcile", run: reconcile, object: held };
    // Without our finalizer there is nothing to clean up, or the cleanup is done.
    if (!hasFinalizer(held, finalizer)) return undefined;
    return { handler: "cleanup", run: cleanup, object: held };
  }
  if (!isHeld) return { handler: "reconcile", run: reconcile, object };
  if (abandonsCleanup) {
    const released = await releaseFinalizer(kube, object, finalizer);
    // Removing the last finalizer of a terminating object deletes it.
    if (isTerminating(released) && released.metadata.finalizers === undefined) return undefined;
    return { handler: "reconcile", run: reconcile, object: released };
  }
  if (isTerminating(object)) {
    log.warn(
      { finalizer, fix: 'define cleanup, or set it to "abandon"' },
      "deletion blocked by this controller's finalizer, which has no cleanup",
    );
  }
  return { handler: "reconcile", run: reconcile, object };
}
