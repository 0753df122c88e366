import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import {
  atLeast,
  MUST_READ,
  type KubeClient,
  type NamespacedName,
  type ServerRead,
} from "@konverge/kube";
import type { ResourceTarget } from "../define/attempt-kube.ts";

/** The address of a target on the server. A copy of the object adds its uid, and the version that a read must have. */
export interface ResolvedTarget<T extends ApiObject> {
  readonly type: ResourceType<T>;
  readonly name: NamespacedName;
  readonly uid: string | undefined;
  readonly read: ServerRead;
}

export async function resolveTarget<T extends ApiObject>(
  client: KubeClient,
  target: T | ResourceTarget<T>,
  ownNamespace: string | undefined,
): Promise<ResolvedTarget<T>> {
  if ("type" in target && "name" in target) {
    const { type, name } = target;
    const namespace = type.scope === "Cluster" ? undefined : (target.namespace ?? ownNamespace);
    return { type, name: { name, ...defined({ namespace }) }, uid: undefined, read: MUST_READ };
  }
  const { apiVersion, kind, metadata } = target;
  // T is the caller's claim; the server resolves the type by apiVersion and kind.
  const type: ResourceType = await client.resolveType(apiVersion, kind);
  return {
    type: type as ResourceType<T>,
    name: nameOf(target),
    uid: metadata.uid,
    read: atLeast(metadata.resourceVersion),
  };
}

export function nameOf({ metadata: { namespace, name } }: ApiObject): NamespacedName {
  return { name, ...defined({ namespace }) };
}
