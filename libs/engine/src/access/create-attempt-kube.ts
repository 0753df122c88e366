import { deepFreeze, defined, type ApiObject, type ResourceType } from "@konverge/core";
import {
  findOwners,
  ignoreNotFound,
  untracked,
  type ChangeDraft,
  type KubeClient,
  type MutateOptions,
  type MutateResult,
  type NamespacedName,
} from "@konverge/kube";
import type { ObjectLanes } from "@konverge/lanes";
import type { AttemptTrace } from "./attempt-trace.ts";
import { bindCall, type CallBinding } from "./bind-call.ts";
import { newerOf, type FreshReads } from "./fresh-reads.ts";
import { createLaneWriter, type WriteOnce } from "./lane-writer.ts";
import { buildObject, type ObjectDraft } from "./new-object.ts";
import type { ObjectCache } from "./object-cache.ts";
import type { WriteGroups } from "./write-group.ts";
import type { AttemptKube, StatusDraft } from "./attempt-kube.ts";
import { nameOf, resolveTarget, type ResourceTarget } from "./object-target.ts";

export interface AttemptKubeOptions extends CallBinding {
  readonly client: KubeClient;
  readonly cache: ObjectCache;
  readonly lanes: ObjectLanes;
  readonly groups: WriteGroups;
  /** Aborted when the attempt must end. */
  readonly signal: AbortSignal;
  readonly namespace: string | undefined;
  /** In-handler tries after a conflict. */
  readonly retry: MutateOptions["retry"];
  readonly freshReads: FreshReads;
  /** How far a cache of this kind must have come for this attempt. */
  readonly floorOf: (type: ResourceType) => string | undefined;
}

export function createAttemptKube(options: AttemptKubeOptions): AttemptKube {
  const { client, cache, trace, retry, freshReads } = options;
  const writeInLane = createLaneWriter(options);

  const locate = (target: string | NamespacedName): NamespacedName => {
    const name = typeof target === "string" ? target : target.name;
    const namespace = typeof target === "string" ? options.namespace : target.namespace;
    return namespace === undefined ? { name } : { namespace, name };
  };
  const call = bindCall(options);

  /** What is read or about to be written of a sensitive kind may not get out with an error or a log line. */
  const note = (type: ResourceType, object: ApiObject) => {
    if (client.isSensitive(type)) trace.secrets.note(object);
  };
  const seen = <T extends ApiObject>(type: ResourceType<T>, object: T): T => {
    note(type, object);
    return freshReads.note(deepFreeze(object));
  };
  const noting =
    <T extends ApiObject>(type: ResourceType<T>, change: ChangeDraft<T>): ChangeDraft<T> =>
    async (draft) => {
      const object = untracked(draft);
      note(type, object);
      try {
        await change(draft);
      } finally {
        note(type, object);
      }
    };

  const mutate = <T extends ApiObject>(
    target: T | ResourceTarget<T>,
    change: (draft: T) => void | Promise<void>,
    { subresource, strategy }: Pick<MutateOptions, "subresource" | "strategy"> = {},
  ): Promise<T> =>
    call(async () => {
      const { type, uid, floor, ...name } = await resolveTarget(client, target, options.namespace);
      const write: WriteOnce = (changes, { handedOn, floor: atLeast }) => {
        // A scale is an object of its own. Where each lost race costs a whole attempt, no race is entered to save a call.
        const mayUseRead = subresource !== "scale" && retry !== "none";
        const read = mayUseRead ? freshReads.take(target) : undefined;
        const carried = newerOf(handedOn, read);
        return client.mutate<ApiObject>(type, name, changes, {
          ...defined({ subresource, strategy, retry, uid, floor: atLeast, carried }),
        });
      };
      const noted = noting(type, change) as ChangeDraft<ApiObject>;
      // Writers of different fields never meet, so no turn is taken: it would only make them wait for each other.
      const written =
        strategy === "fields"
          ? await write(noted, { floor, handedOn: undefined })
          : await writeInLane({ type, name, uid, floor, subresource }, noted, write);
      const result = written as MutateResult<T>;
      if (result.kind === "updated") {
        trace.noteWrite({
          verb: "patch",
          type,
          name,
          ...defined({ subresource }),
          fromVersion: result.beforeVersion,
          object: result.object,
          ...defined({ before: result.before }),
          sensitive: client.isSensitive(type),
          ...defined({ patch: result.patch }),
        });
        cache.noteWrite(type, result.object);
      }
      return seen(type, result.object);
    });

  return {
    get: (type, target) => call(async () => seen(type, await client.get(type, locate(target)))),
    find: (type, target) =>
      call(async () => {
        const found = await client.get(type, locate(target)).catch(ignoreNotFound);
        return found && seen(type, found);
      }),
    list: (
      type,
      { ownedBy, labelSelector, namespace = ownedBy?.metadata.namespace ?? options.namespace } = {},
    ) =>
      call(async () => {
        const cached =
          labelSelector === undefined
            ? await cache.list(type, { namespace, floor: options.floorOf(type) })
            : undefined;
        const items =
          cached ??
          (
            await client.list(type, {
              ...defined({ namespace, labelSelector }),
            })
          ).items;
        const owner = ownedBy?.metadata.uid;
        return items
          .filter((item) => owner === undefined || isOwnedBy(item, owner))
          .map((item) => {
            note(type, item);
            return deepFreeze(item);
          });
      }),
    create: <T extends ApiObject>(type: ResourceType<T>, object: ObjectDraft<T>) =>
      call(async () => {
        const wanted = buildObject(type, object, options.namespace);
        note(type, wanted);
        const created = await client.create(type, wanted);
        trace.noteWrite({ verb: "create", type, name: nameOf(created), object: created });
        cache.noteWrite(type, created);
        return seen(type, created);
      }),
    delete: (object) =>
      call(async () => {
        const {
          type,
          uid,
          floor: _floor,
          ...name
        } = await resolveTarget(client, object, options.namespace);
        const deleted = await client
          .delete(type, name, uid === undefined ? {} : { uid })
          .then(() => true)
          .catch((error: unknown) => ignoreNotFound(error) ?? false);
        if (!deleted) return;
        trace.noteWrite({ verb: "delete", type, name, object });
        cache.noteDelete(type, object);
      }),
    apply: (type, object, { force } = {}) =>
      call(async () => {
        note(type, object);
        const how = force === undefined ? {} : { force };
        const applied = await client.apply(type, object, how).catch((error: unknown) => {
          noteOwners(trace, type, object, error);
          throw error;
        });
        trace.noteWrite({ verb: "apply", type, name: nameOf(applied), object: applied });
        cache.noteWrite(type, applied);
        return seen(type, applied);
      }),
    replace: <T extends ApiObject>(object: T) =>
      call(async () => {
        const { type } = await resolveTarget<T>(client, object, options.namespace);
        note(type, object);
        const replaced = await client.replace(type, object);
        const { resourceVersion: fromVersion = "" } = object.metadata;
        // The server writes nothing when it has it so already.
        if (replaced.metadata.resourceVersion !== fromVersion) {
          const name = nameOf(object);
          trace.noteWrite({ verb: "update", type, name, fromVersion, object: replaced });
          cache.noteWrite(type, replaced);
        }
        return seen(type, replaced);
      }),
    mutate,
    mutateStatus: <T extends ApiObject>(
      target: T | ResourceTarget<T>,
      change: (draft: StatusDraft<T>) => void | Promise<void>,
      how: Pick<MutateOptions, "strategy"> = {},
    ) =>
      mutate<T>(target, (draft) => change(draft as StatusDraft<T>), {
        ...how,
        subresource: "status",
      }),
  };
}

function isOwnedBy(object: ApiObject, uid: string): boolean {
  return object.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
}

/** Who owns the fields that an apply was refused for: a fight, even if the handler takes it as an answer. */
function noteOwners(
  trace: AttemptTrace,
  type: ResourceType,
  object: ApiObject,
  error: unknown,
): void {
  const competingWriters = findOwners(error);
  if (competingWriters.length === 0) return;
  trace.noteConflict({
    ref: { ...type, ...nameOf(object) },
    atMs: Date.now(),
    try: 1,
    readVersion: object.metadata.resourceVersion ?? "",
    competingWriters,
    isThrown: true,
    waitedMs: 0,
  });
}
