import {
  deepFreeze,
  defined,
  KonvergeError,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import {
  ignoreNotFound,
  type KubeClient,
  type NamespacedName,
  type ObjectTarget,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import { matchesSelection } from "./attempt-reads.ts";
import { directHost } from "./call-host.ts";
import { mutateStatusBy } from "./mutate-status.ts";
import { resolveKind, resolveRead, resolveTarget } from "./resolve-target.ts";
import { createWriteCalls } from "./write-calls.ts";

/**
 * The calls of a handler outside of one, for tests: each reaches the API server, and none is recorded. `namespace` takes the
 * place of the reconciled object's.
 */
export function createDirectKube(client: KubeClient, namespace: string): AttemptKube {
  const get: AttemptKube["get"] = async <T extends ApiObject>(
    first: ResourceType<T> | ObjectTarget<T>,
    second?: string | NamespacedName,
  ) => {
    const { type, name } = await resolveRead<T>(client, { first, second }, namespace);
    return deepFreeze(await client.get(type, name));
  };
  const mutate: AttemptKube["mutate"] = async <T extends ApiObject>(
    target: T | ObjectTarget<T>,
    change: (draft: T) => void | Promise<void>,
    { subresource, strategy }: Parameters<AttemptKube["mutate"]>[2] = {},
  ) => {
    const { type, name, uid, read } = await resolveTarget<T>(client, target, namespace);
    const how = { basis: read, ...defined({ subresource, strategy, uid }) };
    return deepFreeze((await client.mutate<T>(type, name, change, how)).object);
  };
  return {
    ...createWriteCalls(directHost(client, namespace)),
    get,
    find: async <T extends ApiObject>(
      first: ResourceType<T> | ObjectTarget<T>,
      second?: string | NamespacedName,
    ) => {
      const { type, name } = await resolveRead<T>(client, { first, second }, namespace);
      const found = await client.get(type, name).catch(ignoreNotFound);
      return found && deepFreeze(found);
    },
    list: async (
      kind,
      { ownedBy, labelSelector, fieldSelector, index, namespace: wanted } = {},
    ) => {
      if (index !== undefined) {
        throw new KonvergeError(
          "invalid_request",
          "index: only a handler can list by an index of its controller; omit it",
        );
      }
      const type = await resolveKind(client, kind);
      const inside = wanted ?? ownedBy?.metadata.namespace ?? namespace;
      const scope = type.scope === "Cluster" ? undefined : inside;
      const selection = defined({ namespace: scope, labelSelector, fieldSelector });
      const { items } = await client.list(type, selection);
      const ownerUid = ownedBy?.metadata.uid;
      return items.filter((item) => matchesSelection(item, { ownerUid })).map(deepFreeze);
    },
    api: (type) => client.api(type),
    mutate,
    mutateStatus: mutateStatusBy(mutate),
  };
}
