import { deepFreeze, defined, type ApiObject, type ResourceType } from "@konverge/core";
import {
  ignoreNotFound,
  ownerUidOf,
  type ListOptions,
  type NamespacedName,
  type ObjectSelection,
  type ObjectTarget,
} from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { Attempt } from "./attempt.ts";
import { indexErrorFields } from "./index-error-fields.ts";
import { hasIndexValues, indexedValues, type NamedIndexValue } from "./indexed-values.ts";
import { resolveKind, resolveRead } from "./resolve-target.ts";

/** Registers the content of a sensitive object, which must not appear in an error or a log line (P12). */
export function noteSecrets(attempt: Attempt, type: ResourceType, object: object): void {
  if (attempt.client.isSensitive(type)) attempt.trace.secrets.note(object);
}

/** The object as a handler receives it: frozen, and good for one write without a second read. */
export function handOut<T extends ApiObject>(
  attempt: Attempt,
  type: ResourceType<T>,
  object: T,
): T {
  noteSecrets(attempt, type, object);
  return attempt.freshReads.note(deepFreeze(object));
}

type LiveList = {
  readonly [Option in keyof Selection]: Selection[Option] | undefined;
} & Pick<ObjectSelection, "ownerUid"> & { readonly indexed: readonly NamedIndexValue[] };
type Selection = Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector">;

type Reads = Pick<AttemptKube, "get" | "find" | "list">;

export function createAttemptReads(attempt: Attempt): Reads {
  const ownNamespace = attempt.lease.key.namespace;

  const read = async <T extends ApiObject>(
    first: ResourceType<T> | ObjectTarget<T>,
    second: string | NamespacedName | undefined,
  ): Promise<T> => {
    const { client } = attempt;
    const { type, name } = await resolveRead<T>(client, { first, second }, ownNamespace);
    return handOut(attempt, type, await client.get(type, name));
  };
  const listLive = async <T extends ApiObject>(
    type: ResourceType<T>,
    { ownerUid, indexed, ...selection }: LiveList,
  ): Promise<readonly T[]> => {
    const { items } = await attempt.client.list(type, { ...defined(selection) });
    return items.filter(
      (item) =>
        isOwnedBy(item, ownerUid) &&
        hasIndexValues(item, indexed, (error, index) =>
          attempt.log.error(
            indexErrorFields(item, { error, index, isSensitive: attempt.client.isSensitive(type) }),
            "index function threw",
          ),
        ),
    );
  };

  return {
    get: <T extends ApiObject>(
      first: ResourceType<T> | ObjectTarget<T>,
      second?: string | NamespacedName,
    ) => attempt.call(() => read(first, second)),
    find: <T extends ApiObject>(
      first: ResourceType<T> | ObjectTarget<T>,
      second?: string | NamespacedName,
    ) => attempt.call(() => read(first, second).catch(ignoreNotFound)),
    list: (
      kind,
      {
        ownedBy,
        labelSelector,
        fieldSelector,
        index = {},
        namespace = ownedBy?.metadata.namespace ?? ownNamespace,
      } = {},
    ) =>
      attempt.call(async () => {
        const type = await resolveKind(attempt.client, kind);
        const inside = type.scope === "Cluster" ? undefined : namespace;
        const ownerUid = ownerUidOf(ownedBy);
        const { cache, controller } = attempt.runtime;
        const indexed = indexedValues(controller, type, index);
        const wanted = { namespace: inside, labelSelector, fieldSelector, ownerUid, indexed };
        const atLeast = attempt.requestedVersion(type);
        const found =
          (await cache.list(type, { ...wanted, atLeast })) ?? (await listLive(type, wanted));
        for (const item of found) noteSecrets(attempt, type, item);
        return found.map((item) => attempt.freshReads.noteListed(deepFreeze(item)));
      }),
  };
}

/** True if the object has the owner. Undefined: any. */
export function isOwnedBy({ metadata }: ApiObject, ownerUid: string | undefined): boolean {
  const { ownerReferences = [] } = metadata;
  return ownerUid === undefined || ownerReferences.some(({ uid }) => uid === ownerUid);
}
