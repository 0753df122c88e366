import type { ApiObject, ObjectMeta, ResourceType } from "@konverge/core";
import type { NamespacedName } from "../names/resource-path.ts";
import type { ObjectRef } from "./object-ref.ts";

/** A kind by name, without its type: the API server is asked for its resource. */
export interface KindName {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Addresses an object by kind and name, without a copy of it. Default namespace: that of the reconciled object. */
export interface ResourceTarget<T extends ApiObject> extends NamespacedName {
  /** The kind. */
  readonly type: ResourceType<T>;
}

/** Addresses an object by the name of its kind, as the references that workflow steps return. */
export interface NamedTarget extends Pick<ObjectRef, "apiVersion" | "kind" | "name"> {
  /** Default in a handler: that of the reconciled object. */
  readonly namespace?: string;
  /** Name of the cluster in the configuration. Default: the caller's cluster. */
  readonly cluster?: string;
  /** If set, another object with the same name is not changed. */
  readonly uid?: string;
  /** False in the ref of a step that only changed the object: an undo does not delete it. */
  readonly created?: boolean;
}

/** An object to write: plain JSON, or a typed kind. */
export type ObjectManifest = ObjectHead | (ObjectHead & { readonly [field: string]: unknown });

interface ObjectHead {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Partial<ObjectMeta>>;
}

/** The part of an object that addresses it, also for an object that a step has read. */
export interface ObjectIdentity {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Pick<Partial<ObjectMeta>, "name" | "namespace" | "uid" | "resourceVersion">;
}

/** An existing object: a reference, a name with its kind or type, or an object that was read. */
export type ObjectTarget<T extends ApiObject = ApiObject> =
  | NamedTarget
  | ObjectManifest
  | ObjectIdentity
  | ResourceTarget<T>;

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

/** The fields of an object to apply: only those that the caller wants to own, at every level, also inside of lists. */
export type AppliedFields<T extends ApiObject> = {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: Readonly<Partial<ObjectMeta>> & { readonly name: string };
} & { readonly [Field in Exclude<keyof T, keyof ApiObject>]?: SomeOf<T[Field]> };

type SomeOf<T> = T extends readonly (infer Item)[]
  ? readonly SomeOf<Item>[]
  : T extends object
    ? { readonly [Field in keyof T]?: SomeOf<T[Field]> | undefined }
    : T;
