import {
  deepFreeze,
  defined,
  formatApiVersion,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import {
  ownerUidOf,
  type KindName,
  type ListCallOptions,
  type ReadonlyObject,
} from "@konverge/kube";
import type { VerbScope } from "./verb-scope.ts";

export async function listObjects<T extends ApiObject>(
  scope: VerbScope,
  kind: ResourceType<T> | KindName,
  { ownedBy, namespace, labelSelector, fieldSelector }: ListCallOptions,
): Promise<readonly ReadonlyObject<T>[]> {
  const owner = ownerUidOf(ownedBy);
  const reached = await scope.reachKind(
    "apiVersion" in kind
      ? kind
      : { apiVersion: formatApiVersion(kind.group, kind.version), kind: kind.kind },
  );
  const { client, type } = reached;
  const wanted = namespace ?? ownedBy?.metadata.namespace;
  const inside = type.scope === "Cluster" ? undefined : wanted;
  const { items } = await client.list(
    type,
    defined({ namespace: inside, labelSelector, fieldSelector }),
  );
  const found = items.filter(
    ({ metadata }) =>
      owner === undefined || metadata.ownerReferences?.some(({ uid }) => uid === owner) === true,
  );
  for (const item of found) scope.noteSeen(reached, item);
  return found.map((item) => deepFreeze(item) as ReadonlyObject<T>);
}
