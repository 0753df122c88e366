import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import type { KubeClient, NamespacedName } from "@konverge/kube";

/** Names an object by its kind when there is no copy of it at hand; without a namespace, in the reconciled object's. */
export interface ResourceTarget<T extends ApiObject> extends NamespacedName {
  readonly type: ResourceType<T>;
}

/** What a target is called on the server; `uid` and `floor` when a copy of it is at hand. */
export interface ResolvedTarget<T extends ApiObject> extends NamespacedName {
  readonly type: ResourceType<T>;
  readonly uid?: string;
  readonly floor?: string;
}

export async function resolveTarget<T extends ApiObject>(
  client: KubeClient,
  target: T | ResourceTarget<T>,
  ownNamespace: string | undefined,
): Promise<ResolvedTarget<T>> {
  if ("type" in target && "name" in target) {
    const { type, name } = target;
    const namespace = type.scope === "Cluster" ? undefined : (target.namespace ?? ownNamespace);
    return { type, name, ...defined({ namespace }) };
  }
  const { apiVersion, kind, metadata } = target;
  // The compiler's T is what the caller says; the server's type is found by apiVersion and kind.
  const type: ResourceType = await client.resolveType(apiVersion, kind);
  return {
    type: type as ResourceType<T>,
    ...nameOf(target),
    ...defined({ uid: metadata.uid, floor: metadata.resourceVersion }),
  };
}

export function nameOf({ metadata: { namespace, name } }: ApiObject): NamespacedName {
  return namespace === undefined ? { name } : { namespace, name };
}
