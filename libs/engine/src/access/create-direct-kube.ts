import { deepFreeze, defined, type ApiObject, type ResourceType } from "@konverge/core";
import {
  ignoreNotFound,
  type KubeClient,
  type NamespacedName,
  type NewObject,
} from "@konverge/kube";
import type { AttemptKube, ResourceTarget } from "../define/attempt-kube.ts";
import { buildIntent, buildObject, isChild, type ObjectDraft } from "../define/new-object.ts";
import { isOwnedBy } from "./attempt-reads.ts";
import { mutateStatusBy } from "./mutate-status.ts";
import { resolveTarget } from "./resolve-target.ts";

/**
 * The calls of a handler outside of one, for tests: each reaches the API server, and none is recorded. `namespace` takes the
 * place of the reconciled object's.
 */
export function createDirectKube(client: KubeClient, namespace: string): AttemptKube {
  const locate = (target: string | NamespacedName): NamespacedName =>
    typeof target === "string" ? { name: target, namespace } : target;
  const find: AttemptKube["find"] = async (type, target) => {
    const found = await client.get(type, locate(target)).catch(ignoreNotFound);
    return found && deepFreeze(found);
  };
  const mutate: AttemptKube["mutate"] = async <T extends ApiObject>(
    target: T | ResourceTarget<T>,
    change: (draft: T) => void | Promise<void>,
    { subresource, strategy }: Parameters<AttemptKube["mutate"]>[2] = {},
  ) => {
    const { type, name, uid, read } = await resolveTarget(client, target, namespace);
    const how = { basis: read, ...defined({ subresource, strategy, uid }) };
    return deepFreeze((await client.mutate<T>(type, name, change, how)).object);
  };
  return {
    get: async (type, target) => deepFreeze(await client.get(type, locate(target))),
    find,
    list: async (type, { ownedBy, labelSelector, namespace: wanted } = {}) => {
      const inside = wanted ?? ownedBy?.metadata.namespace ?? namespace;
      const scope = type.scope === "Cluster" ? undefined : inside;
      const { items } = await client.list(type, defined({ namespace: scope, labelSelector }));
      const owner = ownedBy?.metadata.uid;
      return items.filter((item) => owner === undefined || isOwnedBy(item, owner)).map(deepFreeze);
    },
    create: async <T extends ApiObject>(type: ResourceType<T>, object: ObjectDraft<T>) =>
      deepFreeze(await client.create(type, buildObject(type, object, namespace))),
    delete: async (object, { propagationPolicy, gracePeriodSeconds } = {}) => {
      const { type, name, uid } = await resolveTarget(client, object, namespace);
      const how = defined({ uid, propagationPolicy, gracePeriodSeconds });
      await client.delete(type, name, how).catch(ignoreNotFound);
    },
    apply: async <T extends ApiObject>(
      type: ResourceType<T>,
      object: ObjectDraft<T> | NewObject<T> | T,
      { force }: { readonly force?: boolean } = {},
    ) => {
      const wanted = buildIntent(type, object, namespace);
      const how = { force: force ?? isChild(object, wanted, undefined) };
      return deepFreeze(await client.apply(type, wanted, how));
    },
    replace: async <T extends ApiObject>(object: T) => {
      const { type } = await resolveTarget<T>(client, object, namespace);
      return deepFreeze(await client.replace(type, object));
    },
    mutate,
    mutateStatus: mutateStatusBy(mutate),
  };
}
