import { defined, parseApiVersion, type ApiObject, type ResourceType } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";

/**
 * Returns the controller owners of a kind, compared by group and kind without the version. They are in the object's namespace,
 * or cluster-scoped.
 */
export function ownersOf(
  object: ApiObject,
  { group, kind, scope }: ResourceType,
): NamespacedName[] {
  const { namespace, ownerReferences = [] } = object.metadata;
  return ownerReferences
    .filter(
      (owner) =>
        owner.controller === true &&
        owner.kind === kind &&
        parseApiVersion(owner.apiVersion).group === group,
    )
    .map(({ name }) => (scope === "Cluster" ? { name } : { name, ...defined({ namespace }) }));
}
