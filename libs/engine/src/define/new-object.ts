import {
  defined,
  formatApiVersion,
  KonvergeError,
  type ApiObject,
  type ObjectMeta,
  type ResourceType,
} from "@konverge/core";
import { ownerOf, setControllerReference, type NewObject } from "@konverge/kube";

/** An object to create. Fields of `spec` with defaults are optional. */
export type ObjectDraft<T extends ApiObject> = {
  readonly name: string;
  /** Default: the namespace of the owner, or of the reconciled object. */
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

/** Returns the object to send. @throws KonvergeError `invalid_draft` if a required namespace is missing */
export function buildObject<T extends ApiObject>(
  type: ResourceType<T>,
  input: ObjectDraft<T>,
  fallbackNamespace: string | undefined,
): T {
  const { name, namespace, labels, annotations, finalizers, ownedBy, ...body } = input;
  const inNamespace = namespace ?? ownedBy?.metadata.namespace ?? fallbackNamespace;
  assertNamespace(type, name, inNamespace);
  const metadata: ObjectMeta = {
    name,
    ...(type.scope === "Namespaced" && inNamespace !== undefined ? { namespace: inNamespace } : {}),
    ...defined({ labels, annotations }),
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

/** Returns the object to apply: a draft as for a creation, or a manifest, whose namespace has the same default. */
export function buildIntent<T extends ApiObject>(
  type: ResourceType<T>,
  input: ObjectDraft<T> | NewObject<T> | T,
  fallbackNamespace: string | undefined,
): T {
  if (!("metadata" in input)) {
    return buildObject(type, input, fallbackNamespace);
  }
  const { name = "", namespace = fallbackNamespace } = input.metadata as Partial<ObjectMeta>;
  assertNamespace(type, name, namespace);
  const metadata =
    type.scope === "Namespaced" ? { ...input.metadata, namespace } : { ...input.metadata };
  const apiVersion = formatApiVersion(type.group, type.version);
  return { apiVersion, kind: type.kind, ...input, metadata } as unknown as T;
}

/** True if the reconciled object or `ownedBy` controls an object to apply: no other manager has a claim to its fields. */
export function isChild(
  given: object,
  wanted: ApiObject,
  reconciled: ApiObject | undefined,
): boolean {
  if ("ownedBy" in given && given.ownedBy !== undefined) return true;
  const owner = ownerOf(wanted);
  return owner !== undefined && owner.uid === reconciled?.metadata.uid;
}

function assertNamespace(
  { kind, scope }: ResourceType,
  name: string,
  namespace: string | undefined,
): void {
  if (scope !== "Namespaced" || namespace !== undefined) return;
  throw new KonvergeError(
    "invalid_draft",
    `${kind} "${name}": metadata.namespace is missing; set one`,
  );
}
