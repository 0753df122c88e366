import {
  defined,
  formatApiVersion,
  KonvergeError,
  type ApiObject,
  type ObjectMeta,
  type ResourceType,
} from "@konverge/core";
import { setControllerReference } from "@konverge/kube";

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
  if (type.scope === "Namespaced" && inNamespace === undefined) {
    throw new KonvergeError(
      "invalid_draft",
      `create ${type.kind} "${name}": namespace is missing; set one`,
    );
  }
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
