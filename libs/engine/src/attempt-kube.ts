import {
  formatApiVersion,
  isKonvergeError,
  KonvergeError,
  type ApiObject,
  type JsonObject,
  type JsonValue,
  type ObjectMeta,
  type ResourceType,
} from "@konverge/core";
import {
  ignoreNotFound,
  isConflict,
  resourceName,
  setControllerReference,
  type KubeClient,
  type MutateOptions,
  type MutateResult,
  type NamespacedName,
} from "@konverge/kube";
import type { ObjectLanes } from "@konverge/queue";
import type { AttemptTrace } from "./attempt-trace.ts";
import type { ObjectCache } from "./object-cache.ts";

/** A draft whose status is there, if empty. */
export type StatusDraft<T> = T & {
  status: T extends { status?: infer Status } ? NonNullable<Status> : Record<string, unknown>;
};

/** An object to create: `spec` may leave out what has a default. */
export type NewObject<T extends ApiObject> = {
  readonly name: string;
  /** Default: the namespace of the owner, else of the reconciled object. */
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly finalizers?: readonly string[];
  /** Sets the controller reference, so that the owner is reconciled when this object changes. */
  readonly ownedBy?: ApiObject;
} & {
  readonly [Field in Exclude<keyof T, "apiVersion" | "kind" | "metadata" | "status">]?: Partial<
    T[Field]
  >;
};

/** Names an object by its kind when there is no copy of it at hand; without a namespace, in the reconciled object's. */
export interface NamedTarget<T extends ApiObject> extends NamespacedName {
  readonly type: ResourceType<T>;
}

/**
 * The API server as a handler sees it: every call is bound to the attempt, asks the gate, and is recorded. Reads give
 * frozen objects; the only way to change one is inside `mutate`.
 */
export interface AttemptKube {
  /** @throws KubeApiError; `isNotFound` tells that there is none. A name alone means the reconciled object's namespace. */
  get<T extends ApiObject>(type: ResourceType<T>, target: string | NamespacedName): Promise<T>;
  /** As `get`, but undefined when there is none. */
  find<T extends ApiObject>(
    type: ResourceType<T>,
    target: string | NamespacedName,
  ): Promise<T | undefined>;
  /**
   * Objects of a kind, in the reconciled object's namespace by default. A kind in the controller's `owns` comes from
   * this worker's cache, never older than this worker's own writes; others from the API server.
   */
  list<T extends ApiObject>(
    type: ResourceType<T>,
    options?: {
      readonly ownedBy?: ApiObject;
      readonly namespace?: string;
      readonly labelSelector?: string;
    },
  ): Promise<readonly T[]>;
  create<T extends ApiObject>(type: ResourceType<T>, object: NewObject<T>): Promise<T>;
  /** Deletes exactly this object, not a successor of the same name. Gone already is fine. */
  delete(object: ApiObject): Promise<void>;
  /** Server-side apply under the field manager `konverge/<controller>`. */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: T,
    options?: { readonly force?: boolean },
  ): Promise<T>;
  /**
   * Read, change, write, as often as it takes: `change` gets a fresh draft each time and must depend on nothing decided
   * before. Nothing changed means no write. @throws KubeApiError `isConflict` when others kept winning.
   */
  mutate<T extends ApiObject>(
    target: T | NamedTarget<T>,
    change: (draft: T) => void | Promise<void>,
    options?: Pick<MutateOptions, "subresource">,
  ): Promise<T>;
  /** {@link AttemptKube.mutate} through the status subresource. */
  mutateStatus<T extends ApiObject>(
    target: T | NamedTarget<T>,
    change: (draft: StatusDraft<T>) => void | Promise<void>,
  ): Promise<T>;
}

export interface AttemptKubeOptions {
  readonly client: KubeClient;
  readonly cache: ObjectCache;
  readonly lanes: ObjectLanes;
  /** Aborted when the attempt must end. */
  readonly signal: AbortSignal;
  readonly trace: AttemptTrace;
  readonly namespace: string | undefined;
  /** In-handler tries after a conflict. */
  readonly retry: MutateOptions["retry"];
  /** Throws once the attempt has ended. */
  readonly assertOpen: () => void;
}

export function createAttemptKube(options: AttemptKubeOptions): AttemptKube {
  const { client, cache, lanes, signal, trace, retry, assertOpen } = options;

  const locate = (target: string | NamespacedName): NamespacedName => {
    const name = typeof target === "string" ? target : target.name;
    const namespace = typeof target === "string" ? options.namespace : target.namespace;
    return namespace === undefined ? { name } : { namespace, name };
  };
  /** Every call passes here: refused after the end, deferrals remembered even if the handler swallows them. */
  const call = async <R>(run: () => Promise<R>): Promise<R> => {
    assertOpen();
    try {
      return await run();
    } catch (error) {
      if (isKonvergeError(error) && error.code === "deferred") trace.noteDeferred(error);
      throw error;
    }
  };

  /** All writers of an object take turns, whatever key they run under; each hands on what it knows of the object. */
  const inLane = async <T extends ApiObject>(
    { type, name, subresource }: LaneTarget,
    write: (carried: JsonObject | undefined) => Promise<MutateResult<T>>,
  ): Promise<MutateResult<T>> => {
    const turn = await lanes.enter(laneOf(type, name), signal);
    trace.noteLane(turn.waitedMs);
    // A scale is an object of its own; of what is sensitive nothing leaves the attempt (P12).
    const mayCarry = subresource !== "scale" && !client.isSensitive(type);
    let known: JsonObject | undefined;
    // Our own writers take turns, so whoever won against one is a stranger.
    let stranger = false;
    try {
      const result = await write(mayCarry ? turn.carried : undefined);
      if (mayCarry) known = result.object as unknown as JsonObject;
      stranger = result.lost > 0;
      return result;
    } catch (error) {
      stranger = isConflict(error);
      throw error;
    } finally {
      turn.leave(known, { stranger });
    }
  };

  const mutate = <T extends ApiObject>(
    target: T | NamedTarget<T>,
    change: (draft: T) => void | Promise<void>,
    { subresource }: Pick<MutateOptions, "subresource"> = {},
  ): Promise<T> =>
    call(async () => {
      const { type, uid, floor, ...name } = await resolve(client, target, options.namespace);
      const result = await inLane({ type, name, subresource }, (carried) =>
        client.mutate(type, name, change, {
          ...(subresource === undefined ? {} : { subresource }),
          ...(retry === undefined ? {} : { retry }),
          ...(uid === undefined ? {} : { uid }),
          ...(floor === undefined ? {} : { floor }),
          ...(carried === undefined ? {} : { carried }),
        }),
      );
      if (result.kind === "updated") {
        trace.noteWrite({
          verb: "patch",
          type,
          name,
          ...(subresource === undefined ? {} : { subresource }),
          fromVersion: result.beforeVersion,
          object: result.object,
          ...(result.patch === undefined ? {} : { patch: result.patch }),
        });
        cache.noteWrite(type, result.object);
      }
      return deepFreeze(result.object);
    });

  return {
    get: (type, target) => call(async () => deepFreeze(await client.get(type, locate(target)))),
    find: (type, target) =>
      call(async () => deepFreeze(await client.get(type, locate(target)).catch(ignoreNotFound))),
    list: (
      type,
      { ownedBy, labelSelector, namespace = ownedBy?.metadata.namespace ?? options.namespace } = {},
    ) =>
      call(async () => {
        const cached = labelSelector === undefined ? await cache.list(type, namespace) : undefined;
        const items =
          cached ??
          (
            await client.list(type, {
              ...(namespace === undefined ? {} : { namespace }),
              ...(labelSelector === undefined ? {} : { labelSelector }),
            })
          ).items;
        const owner = ownedBy?.metadata.uid;
        return items
          .filter((item) => owner === undefined || isOwnedBy(item, owner))
          .map((item) => deepFreeze(item));
      }),
    create: <T extends ApiObject>(type: ResourceType<T>, object: NewObject<T>) =>
      call(async () => {
        const created = await client.create(type, buildObject(type, object, options.namespace));
        trace.noteWrite({ verb: "create", type, name: nameOf(created), object: created });
        cache.noteWrite(type, created);
        return deepFreeze(created);
      }),
    delete: (object) =>
      call(async () => {
        const {
          type,
          uid,
          floor: _floor,
          ...name
        } = await resolve(client, object, options.namespace);
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
        const applied = await client.apply(type, object, force === undefined ? {} : { force });
        trace.noteWrite({ verb: "apply", type, name: nameOf(applied), object: applied });
        cache.noteWrite(type, applied);
        return deepFreeze(applied);
      }),
    mutate,
    mutateStatus: <T extends ApiObject>(
      target: T | NamedTarget<T>,
      change: (draft: StatusDraft<T>) => void | Promise<void>,
    ) => mutate<T>(target, (draft) => change(draft as StatusDraft<T>), { subresource: "status" }),
  };
}

interface LaneTarget {
  readonly type: ResourceType;
  readonly name: NamespacedName;
  readonly subresource: MutateOptions["subresource"] | undefined;
}

/** One lane per object, whatever version of its kind it is written through. */
function laneOf(type: ResourceType, { namespace = "_", name }: NamespacedName): string {
  return [resourceName(type), namespace, name].map(encodeURIComponent).join("/");
}

interface ResolvedTarget<T extends ApiObject> extends NamespacedName {
  readonly type: ResourceType<T>;
  readonly uid?: string;
  readonly floor?: string;
}

async function resolve<T extends ApiObject>(
  client: KubeClient,
  target: T | NamedTarget<T>,
  ownNamespace: string | undefined,
): Promise<ResolvedTarget<T>> {
  if ("type" in target && "name" in target) {
    const { type, name } = target;
    const namespace = type.scope === "Cluster" ? undefined : (target.namespace ?? ownNamespace);
    return { type, name, ...(namespace === undefined ? {} : { namespace }) };
  }
  const { apiVersion, kind, metadata } = target;
  // The compiler's T is what the caller says; the server's type is found by apiVersion and kind.
  const type = (await client.resolveType(apiVersion, kind)) as ResourceType<T>;
  return {
    type,
    ...nameOf(target),
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
    ...(metadata.resourceVersion === undefined ? {} : { floor: metadata.resourceVersion }),
  };
}

function nameOf({ metadata: { namespace, name } }: ApiObject): NamespacedName {
  return namespace === undefined ? { name } : { namespace, name };
}

function isOwnedBy(object: ApiObject, uid: string): boolean {
  return object.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
}

function buildObject<T extends ApiObject>(
  type: ResourceType<T>,
  input: NewObject<T>,
  fallbackNamespace: string | undefined,
): T {
  const { name, namespace, labels, annotations, finalizers, ownedBy, ...body } = input;
  const inNamespace = namespace ?? ownedBy?.metadata.namespace ?? fallbackNamespace;
  if (type.scope === "Namespaced" && inNamespace === undefined) {
    throw new KonvergeError(
      "draft_invalid",
      `create ${type.kind} "${name}": namespace is missing; name one`,
    );
  }
  const metadata: ObjectMeta = {
    name,
    ...(type.scope === "Namespaced" && inNamespace !== undefined ? { namespace: inNamespace } : {}),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
  };
  const object = {
    apiVersion: formatApiVersion(type.group, type.version),
    kind: type.kind,
    metadata,
    ...body,
  };
  if (ownedBy !== undefined) setControllerReference(object, ownedBy);
  return object as unknown as T;
}

/** Freezes in depth, so that changing what was read throws at the place of the mistake. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value as Record<string, JsonValue>)) deepFreeze(member);
  return value;
}
