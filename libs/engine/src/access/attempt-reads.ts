import { deepFreeze, defined, type ApiObject, type ResourceType } from "@konverge/core";
import { ignoreNotFound, isPart, type NamespacedName, type ObjectSelection } from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { Attempt } from "./attempt.ts";

/** Registers the content of a sensitive object, which must not appear in an error or a log line (P12). */
export function noteSecrets(attempt: Attempt, type: ResourceType, object: ApiObject): void {
  if (attempt.client.isSensitive(type)) attempt.trace.secrets.note(object);
}

/** The object as a handler receives it: frozen, and good for one write without a second read. */
export function handOut<T extends ApiObject>(
  attempt: Attempt,
  type: ResourceType<T>,
  object: T,
): T {
  noteSecrets(attempt, type, object);
  // A write must not start from a part of the object.
  if (isPart(object)) return attempt.freshReads.noteListed(deepFreeze(object));
  return attempt.freshReads.note(deepFreeze(object));
}

interface LiveList extends Pick<ObjectSelection, "namespace" | "ownerUid"> {
  readonly labelSelector: string | undefined;
}

export function createAttemptReads(attempt: Attempt): Pick<AttemptKube, "get" | "find" | "list"> {
  const { client } = attempt;
  const ownNamespace = attempt.lease.key.namespace;

  const locate = (target: string | NamespacedName): NamespacedName => {
    if (typeof target !== "string") return target;
    return { name: target, ...defined({ namespace: ownNamespace }) };
  };
  const listLive = async <T extends ApiObject>(
    type: ResourceType<T>,
    { namespace, labelSelector, ownerUid }: LiveList,
  ): Promise<readonly T[]> => {
    const { items } = await client.list(type, defined({ namespace, labelSelector }));
    return ownerUid === undefined ? items : items.filter((item) => isOwnedBy(item, ownerUid));
  };

  return {
    get: (type, target) =>
      attempt.call(async () => handOut(attempt, type, await client.get(type, locate(target)))),
    find: (type, target) =>
      attempt.call(async () => {
        const found = await client.get(type, locate(target)).catch(ignoreNotFound);
        return found && handOut(attempt, type, found);
      }),
    list: (
      type,
      { ownedBy, labelSelector, namespace = ownedBy?.metadata.namespace ?? ownNamespace } = {},
    ) =>
      attempt.call(async () => {
        const inside = type.scope === "Cluster" ? undefined : namespace;
        const ownerUid = ownedBy?.metadata.uid;
        const atLeast = attempt.requestedVersion(type);
        const cached =
          labelSelector === undefined
            ? await attempt.runtime.cache.list(type, { namespace: inside, ownerUid, atLeast })
            : undefined;
        const found =
          cached ?? (await listLive(type, { namespace: inside, labelSelector, ownerUid }));
        for (const item of found) noteSecrets(attempt, type, item);
        return found.map((item) => attempt.freshReads.noteListed(deepFreeze(item)));
      }),
  };
}

export function isOwnedBy(object: ApiObject, uid: string): boolean {
  return object.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
}
