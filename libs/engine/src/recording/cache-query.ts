import { resourceId, type ResourceType } from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";
import type { NamedIndexValue } from "../access/indexed-values.ts";
import type { ObjectCache } from "../access/object-cache.ts";

type CachedList = Parameters<ObjectCache["list"]>[1];

/** Identifies a list from the cache by what it selects. */
export function listQuery(
  type: ResourceType,
  { namespace, labelSelector, fieldSelector, ownerUid, indexed = [] }: CachedList,
): string {
  const index = (indexed as readonly NamedIndexValue[]).map(({ name, value }) => [name, value]);
  return JSON.stringify([
    typeId(type),
    namespace ?? null,
    labelSelector ?? null,
    fieldSelector ?? null,
    ownerUid ?? null,
    index,
  ]);
}

/** Identifies a read of one object from the cache. */
export function findQuery(type: ResourceType, { namespace, name }: NamespacedName): string {
  return JSON.stringify([typeId(type), namespace ?? null, name]);
}

function typeId(type: ResourceType): string {
  return `${resourceId(type)} ${type.version} ${String(type.keep ?? "")}`;
}
