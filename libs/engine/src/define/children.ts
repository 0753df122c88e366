import type { ApiObject, ResourceType } from "@konverge/core";
import type { AppliedFields, ObjectDraft, ObjectManifest, Readiness } from "@konverge/kube";
import type { BuiltIn, BuiltInKind, ModelValue } from "@konverge/kube/kinds";

/** A child with its type, for `kube.reconcileChildren`. */
export interface Child<T extends ApiObject = ApiObject> {
  readonly type: ResourceType<T>;
  /** A draft or a manifest, without an owner reference. */
  readonly given: object;
}

/**
 * Returns a child for `kube.reconcileChildren`, with checked fields and a typed result. Takes a draft, a manifest, or a value of
 * a class of client-node.
 */
export function child<T extends ApiObject>(
  type: ResourceType<T>,
  object: Omit<ObjectDraft<T>, "ownedBy"> | AppliedFields<T>,
): Child<T>;
export function child<Model extends object, Given extends NoInfer<Model>>(
  type: BuiltInKind<Model>,
  object: Given & ModelValue<Given, Model>,
): Child<BuiltIn<Model>>;
export function child(type: ResourceType, object: object): Child {
  return { type, given: object };
}

/** The result for one child. */
export interface ChildState<T extends ApiObject = ApiObject> {
  /** The object after the call, frozen. */
  readonly object: T;
  /** The effect of the call. `unchanged`: no API call was made, or the server already had the same content. */
  readonly change: "created" | "updated" | "unchanged" | "deleted";
  /**
   * The status by the rules of kstatus. A deleted child is `terminating` while it has finalizers, else `notFound`. A `failed`
   * child may recover.
   */
  readonly status: Readiness["status"];
  /** The reason why the child is not `current`; empty if it is. */
  readonly message: string;
}

type TypeOf<Listed> = Listed extends Child<infer T> ? T : ApiObject;

/** The result of `kube.reconcileChildren`. */
export interface ChildrenReport<
  Listed extends readonly (Child | ObjectManifest)[] = readonly Child[],
> {
  /** True if every listed child is `current`. */
  readonly ready: boolean;
  /** The messages of the children that are not `current`, with kind and name, for a condition; empty if ready. */
  readonly message: string;
  /** One entry per listed child, in the same order. */
  readonly children: { readonly [Index in keyof Listed]: ChildState<TypeOf<Listed[Index]>> };
  /** Former children: deleted by this call, or terminating since an earlier one. */
  readonly deleted: readonly ChildState[];
}

/** The options of `kube.reconcileChildren`. */
export interface ReconcileChildrenOptions {
  /**
   * The status of a custom resource without a Ready condition. `inProgress` (default) waits until its controller sets one;
   * `ready` is for controllers that never do.
   */
  readonly none?: "ready" | "inProgress";
}
