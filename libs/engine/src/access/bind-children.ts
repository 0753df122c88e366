import { KonvergeError, type ResourceType } from "@konverge/core";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { Attempt } from "./attempt.ts";
import { reconcileChildren, type ChildrenHost } from "./reconcile-children.ts";

/** Returns `reconcileChildren` for the handler of this attempt. */
export function bindChildren(
  attempt: Attempt,
  kube: ChildrenHost["kube"],
): AttemptKube["reconcileChildren"] {
  const { controller } = attempt.runtime;
  const owns = controller.sources
    .filter(({ option }) => option === "owns")
    // Whole objects, even if the controller watches only a part of them.
    .map(({ type: { keep: _whole, ...type } }): ResourceType => type);
  const done = new Set<string>();
  return (owner, listed, { none } = {}) =>
    attempt.call(async () => {
      const { uid = "" } = owner.metadata;
      if (done.has(uid)) {
        throw new KonvergeError(
          "invalid_request",
          `reconcileChildren was already called for ${owner.kind} "${owner.metadata.name}" in this attempt, and a second list would delete the children of the first; pass all children in one call`,
        );
      }
      done.add(uid);
      const host: ChildrenHost = {
        client: attempt.client,
        kube,
        controller: controller.name,
        owns,
      };
      return await reconcileChildren(host, { owner, listed, none });
    });
}
