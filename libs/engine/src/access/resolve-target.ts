import { defined, KonvergeError, type ApiObject, type ResourceType } from "@konverge/core";
import {
  atLeast,
  MUST_READ,
  type KindName,
  type KubeClient,
  type NamespacedName,
  type ObjectTarget,
  type ServerRead,
} from "@konverge/kube";

/** The address of a target on the server. A copy of the object adds its uid, and the version that a read must have. */
export interface ResolvedTarget<T extends ApiObject> {
  readonly type: ResourceType<T>;
  readonly name: NamespacedName;
  readonly uid: string | undefined;
  readonly read: ServerRead;
}

/** Returns the type of a kind. @throws KonvergeError `not_found` if the server does not serve it */
export async function resolveKind<T extends ApiObject>(
  client: KubeClient,
  kind: ResourceType<T> | KindName,
): Promise<ResourceType<T>> {
  if (!("apiVersion" in kind)) return kind;
  // T is the caller's claim; the server resolves the type by apiVersion and kind.
  const type: ResourceType = await client.resolveType(kind.apiVersion, kind.kind);
  return type as ResourceType<T>;
}

export async function resolveTarget<T extends ApiObject>(
  client: KubeClient,
  target: T | ObjectTarget<T>,
  ownNamespace: string | undefined,
): Promise<ResolvedTarget<T>> {
  const type = await resolveKind<T>(client, "apiVersion" in target ? target : target.type);
  const { name, namespace, uid, resourceVersion } = addressOf(target);
  if (name === undefined || name === "") {
    const detail = "is missing; set it";
    throw new KonvergeError("invalid_request", `${type.kind}: name ${detail}`, {
      issues: [{ pointer: "/name", detail }],
    });
  }
  const inNamespace = type.scope === "Cluster" ? undefined : (namespace ?? ownNamespace);
  return {
    type,
    name: { name, ...defined({ namespace: inNamespace }) },
    uid,
    read: resourceVersion === undefined ? MUST_READ : atLeast(resourceVersion),
  };
}

/** Resolves the arguments of `get` and `find`: a type and a name, or a target. */
export async function resolveRead<T extends ApiObject>(
  client: KubeClient,
  {
    first,
    second,
  }: {
    readonly first: ResourceType<T> | ObjectTarget<T>;
    readonly second: string | NamespacedName | undefined;
  },
  ownNamespace: string | undefined,
): Promise<Pick<ResolvedTarget<T>, "type" | "name">> {
  if (second === undefined) {
    return await resolveTarget<T>(client, first as ObjectTarget<T>, ownNamespace);
  }
  const type = first as ResourceType<T>;
  if (typeof second !== "string") return { type, name: second };
  const namespace = type.scope === "Cluster" ? undefined : ownNamespace;
  return { type, name: { name: second, ...defined({ namespace }) } };
}

interface Address extends Partial<NamespacedName> {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** The version of a reference is the one that its step wrote, so it is no minimum for a read. */
function addressOf(target: ObjectTarget): Address {
  if ("metadata" in target) return target.metadata;
  const { name, namespace } = target;
  return { name, ...defined({ namespace, uid: "uid" in target ? target.uid : undefined }) };
}

/** Formats a target for messages. */
export function labelOf(target: ObjectTarget, ownNamespace: string | undefined): string {
  const { name = "", namespace } = addressOf(target);
  const kind = "apiVersion" in target ? target.kind : target.type.kind;
  const isCluster = !("apiVersion" in target) && target.type.scope === "Cluster";
  const inNamespace = "metadata" in target ? namespace : (namespace ?? ownNamespace);
  return inNamespace === undefined || isCluster
    ? `${kind} ${name}`
    : `${kind} ${inNamespace}/${name}`;
}

export function nameOf({ metadata: { namespace, name } }: ApiObject): NamespacedName {
  return { name, ...defined({ namespace }) };
}
