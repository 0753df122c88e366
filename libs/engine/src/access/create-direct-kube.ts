import {
  deepFreeze,
  defined,
  KonvergeError,
  type ApiObject,
  type ResourceType,
} from "@konverge/core";
import {
  ignoreNotFound,
  ownerUidOf,
  type ChangeDraft,
  type KubeCalls,
  type KubeClient,
  type MutateCallOptions,
  type NamespacedName,
  type ObjectTarget,
} from "@konverge/kube";
import { isOwnedBy } from "./attempt-reads.ts";
import { directHost, type DirectCaller } from "./call-host.ts";
import { createChangeCalls, type ChangeObject } from "./change-calls.ts";
import { createCollectionCalls } from "./collection-calls.ts";
import { createEventCall } from "./event-call.ts";
import { createExtractCall } from "./extract-call.ts";
import { createRawCalls } from "./raw-calls.ts";
import { resolveKind, resolveRead, resolveTarget } from "./resolve-target.ts";
import { clientFor, createWriteCalls } from "./write-calls.ts";

type Calls = KubeCalls<"handler">;

const TEST: DirectCaller = {
  component: "konverge/test",
  onEventError(error) {
    throw error;
  },
};

/**
 * The calls of a handler outside of one, for scripts, services and tests: each reaches the API server, and none is recorded.
 * `namespace` takes the place of the reconciled object's.
 */
export function createDirectKube(
  client: KubeClient,
  namespace: string,
  caller: DirectCaller = TEST,
): Calls {
  const get: Calls["get"] = async <T extends ApiObject>(
    first: ResourceType<T> | ObjectTarget<T>,
    second?: string | NamespacedName,
  ) => {
    const { type, name } = await resolveRead<T>(client, { first, second }, namespace);
    return deepFreeze(await client.get(type, name));
  };
  const host = directHost(client, namespace, caller);
  const changeObject: ChangeObject = async <T extends ApiObject>(
    target: T | ObjectTarget<T>,
    change: ChangeDraft<T>,
    { subresource, strategy, dryRun }: MutateCallOptions = {},
  ) => {
    const { type, name, uid, read } = await resolveTarget<T>(client, target, namespace);
    const how = { basis: read, ...defined({ subresource, strategy, uid }) };
    const { kind, object } = await clientFor(host, { dryRun }).mutate<T>(type, name, change, how);
    return { kind, object: deepFreeze(object) };
  };
  return {
    ...createWriteCalls(host),
    ...createChangeCalls(host, changeObject),
    ...createCollectionCalls(host),
    ...createRawCalls(host),
    ...createEventCall(host),
    ...createExtractCall(host),
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
      const ownerUid = ownerUidOf(ownedBy);
      const { items } = await client.list(type, selection);
      return items.filter((item) => isOwnedBy(item, ownerUid)).map(deepFreeze);
    },
    api: (type) => client.api(type),
  };
}
