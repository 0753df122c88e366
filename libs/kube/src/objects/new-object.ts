import {
  defined,
  formatApiVersion,
  KonvergeError,
  type ApiObject,
  type ObjectMeta,
  type ResourceType,
} from "@konverge/core";
import type { NewObject } from "../contract/kube-client.ts";
import type { AppliedFields, ObjectDraft, ObjectIdentity } from "../contract/object-target.ts";
import { ownerOf, setControllerReference } from "./owner-references.ts";

/** Returns the object to send. @throws KonvergeError `invalid_draft` if a required namespace is missing */
function buildObject<T extends ApiObject>(
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

/** Returns the object to create or apply: a draft, or a manifest, whose namespace has the same default. */
export function buildIntent<T extends ApiObject>(
  type: ResourceType<T>,
  input: ObjectDraft<T> | AppliedFields<T> | NewObject<T>,
  fallbackNamespace: string | undefined,
): T {
  if (!("metadata" in input)) {
    return buildObject(type, input, fallbackNamespace);
  }
  // Optional in the classes of client-node.
  const given = (input.metadata ?? {}) as Partial<ObjectMeta>;
  const { name = "", namespace = fallbackNamespace } = given;
  assertNamespace(type, name, namespace);
  const metadata = type.scope === "Namespaced" ? { ...given, namespace } : { ...given };
  return { ...withTypeOf(type, input), metadata } as unknown as T;
}

/** Returns the object with the kind of a type, if it has none: client-node's lists return objects without it. */
export function withTypeOf<T extends object>(
  type: ResourceType,
  object: T,
): T & Pick<ObjectIdentity, "apiVersion" | "kind" | "metadata"> {
  const { apiVersion, kind, metadata } = object as Partial<ObjectIdentity>;
  return {
    ...object,
    apiVersion: apiVersion ?? formatApiVersion(type.group, type.version),
    kind: kind ?? type.kind,
    metadata: metadata ?? {},
  };
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
