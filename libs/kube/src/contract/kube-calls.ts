import type { ApiObject, ResourceType } from "@konverge/core";
import type { BuiltIn, BuiltInKind, ModelValue } from "../names/kinds.ts";
import type { NamespacedName } from "../names/resource-path.ts";
import type {
  ApplyCallOptions,
  CreateOrUpdateOptions,
  DeleteCallOptions,
  DeleteCollectionOptions,
  EventInput,
  EvictOptions,
  ExtractOptions,
  HandlerListOptions,
  ListCallOptions,
  LogOptions,
  MutateCallOptions,
  PageCallOptions,
  PatchCallOptions,
  WriteCallOptions,
} from "./call-options.ts";
import type { ClientNodeApi } from "./forward.ts";
import type { NewObject, RawRequest, RawResponse } from "./kube-client.ts";
import type { ObjectRef } from "./object-ref.ts";
import type {
  AppliedFields,
  KindName,
  ObjectDraft,
  ObjectIdentity,
  ObjectManifest,
  ObjectTarget,
} from "./object-target.ts";

/** The user code that calls. It decides what a call returns. */
type Caller = "handler" | "step";

declare const seen: unique symbol;

/** Marks an object that a step has read, and must not return. */
export interface Seen {
  readonly [seen]: () => never;
}

/** An object that a step has read: frozen, and rejected by the compiler as the step's result. Objects are not recorded (P12). */
export type ReadonlyObject<T> = DeepReadonly<T> & Seen;

type DeepReadonly<T> = T extends object
  ? { readonly [Field in keyof T]: DeepReadonly<T[Field]> }
  : T;

/** An object that was read, frozen. In a step it cannot be its result. */
type ReadBy<By extends Caller, T> = By extends "step" ? ReadonlyObject<T> : T;
/** The result of a write: the object after it in a handler; its reference in a step, which records results but no objects (P12). */
type WrittenBy<By extends Caller, T> = By extends "step" ? ObjectRef : T;

/** A draft whose status exists, possibly empty. */
type StatusDraft<T> = T & {
  status: T extends { status?: infer Status } ? NonNullable<Status> : Record<string, unknown>;
};

/**
 * The API server for user code: `kube` of a handler, and the verbs of a workflow step. Every call passes the guard and is
 * recorded. Reads return frozen objects.
 *
 * A handler passes the type and name of an object, or an object that was read. For a name without a namespace, the namespace of
 * the reconciled object is used. Writes return the object. Calls after the end of the attempt are rejected with `attempt_ended`.
 *
 * A step passes references or manifests, with their namespace. Writes return a reference. Before each write, a step checks in
 * Redis that this worker still holds the run. The write has the precondition of an earlier read, so a worker that was considered
 * lost overwrites no write of its successor. Version conflicts (409), 429, 5xx, missing responses and calls deferred by the guard
 * do not count as attempts of the step. A 403, a 422, or a kind that is not served fails the step immediately. A body may run
 * again after a crash. Each call states whether it detects its own effect.
 */
export interface KubeCalls<By extends Caller> {
  /** Reads an object from the API server. @throws KubeApiError; `isNotFound` if the object does not exist */
  get<T extends ApiObject>(
    type: ResourceType<T>,
    target: string | NamespacedName,
  ): Promise<ReadBy<By, T>>;
  get<T extends ApiObject = ApiObject>(target: ObjectTarget<T>): Promise<ReadBy<By, T>>;
  /** Like `get`, but returns undefined if the object does not exist. */
  find<T extends ApiObject>(
    type: ResourceType<T>,
    target: string | NamespacedName,
  ): Promise<ReadBy<By, T> | undefined>;
  find<T extends ApiObject = ApiObject>(
    target: ObjectTarget<T>,
  ): Promise<ReadBy<By, T> | undefined>;
  /**
   * Lists objects of a kind. In a handler, the objects come from this worker's cache if a source of the controller watches all of
   * them. Cached lists include this worker's own writes; objects of `owns` and `watches` have no managedFields. Other lists come
   * from the API server.
   * @throws KonvergeError `invalid_request` for an index that the controller does not define
   */
  list<T extends ApiObject = ApiObject>(
    type: ResourceType<T> | KindName,
    options?: By extends "step" ? ListCallOptions : HandlerListOptions,
  ): Promise<readonly ReadBy<By, T>[]>;
  /**
   * Lists the objects of a kind page by page, from the API server: `for await (const page of kube.pages(Pod))`. All pages show
   * the same version of the list. The API server keeps that version for about 5 minutes.
   * @throws KonvergeError `list_expired` if the version is no longer available; do less work between pages, or start again
   */
  pages<T extends ApiObject = ApiObject>(
    type: ResourceType<T> | KindName,
    options?: PageCallOptions,
  ): AsyncIterable<readonly ReadBy<By, T>[]>;
  /**
   * Creates an object. `{ name, ownedBy, ... }` takes the namespace and a controller reference from `ownedBy`. A step creates it
   * once: a later attempt finds the annotation of the first one and returns that object. With `generateName`, the name is
   * derived from run and step.
   * @throws KubeApiError `isAlreadyExists`; in a step KonvergeError `object_exists` if another object has the name
   */
  create<T extends ApiObject>(
    type: ResourceType<T>,
    object: ObjectDraft<T> | NewObject<T>,
    options?: WriteCallOptions,
  ): Promise<WrittenBy<By, T>>;
  create<Model extends object, Given extends NoInfer<Model>>(
    type: BuiltInKind<Model>,
    object: Given & ModelValue<Given, Model>,
    options?: WriteCallOptions,
  ): Promise<WrittenBy<By, BuiltIn<Model>>>;
  create<T extends ApiObject = ApiObject>(
    object: ObjectManifest,
    options?: WriteCallOptions,
  ): Promise<WrittenBy<By, T>>;
  /**
   * Server-side apply: creates the object, or sets its fields. Pass only the fields to own. Takes the same draft as `create`, or
   * a manifest with `metadata`. A repeated apply changes nothing.
   * @throws KonvergeError `field_conflict` with the fields, their owners and the fix; in a step `object_replaced` with a `uid`
   */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: ObjectDraft<T> | AppliedFields<T>,
    options?: ApplyCallOptions,
  ): Promise<WrittenBy<By, T>>;
  apply<Model extends object, Given extends NoInfer<Model>>(
    type: BuiltInKind<Model>,
    object: Given & ModelValue<Given, Model>,
    options?: ApplyCallOptions,
  ): Promise<WrittenBy<By, BuiltIn<Model>>>;
  apply<T extends ApiObject = ApiObject>(
    object: ObjectManifest,
    options?: ApplyCallOptions,
  ): Promise<WrittenBy<By, T>>;
  /**
   * Returns the fields of an object that a manager owns by `apply`, to change some and apply them again; undefined if it owns
   * none. Applying the result unchanged changes nothing, except for fields that were applied empty: the API server stores their
   * owner, but neither the empty list nor which of the present values are defaults. Equivalent to client-go's `ExtractInto`.
   * Makes no API call.
   * @throws KonvergeError `invalid_request` if the object has no `managedFields`, or was applied in another version
   */
  extract<T extends ApiObject>(
    object: T | ObjectIdentity,
    options?: ExtractOptions,
  ): Promise<AppliedFields<T> | undefined>;
  /**
   * Patches an object that was read. The patch requires its version and uid, so a write since the read is a conflict. If a name
   * or a reference is passed instead, the body must have its own precondition: `metadata.resourceVersion`, or a `test` of a JSON
   * Patch. Unlike with `mutate`, a conflict is not retried inside the attempt: only the handler can decide whether the patch
   * still applies. A retried step reads and patches again: if the first response was lost, a patch that adds to a list or a
   * number is applied twice. Use `mutate` for such changes.
   * @throws KubeApiError `isConflict`; KonvergeError `invalid_request` without a precondition; `field_conflict` for `apply`
   */
  patch<T extends ApiObject>(
    target: T | ObjectTarget<T>,
    body: object,
    options: PatchCallOptions,
  ): Promise<WrittenBy<By, T>>;
  /**
   * Replaces the object (PUT), including fields of other writers. Use it only for objects that the controller owns completely.
   * The object must come from a read. A write since the read is a conflict, which ends the attempt; the next one reads again.
   */
  replace<T extends ObjectIdentity>(
    object: T,
    options?: WriteCallOptions,
  ): Promise<WrittenBy<By, T>>;
  replace<Model extends object, Given extends NoInfer<Model>>(
    type: BuiltInKind<Model>,
    object: Given & ModelValue<Given, Model>,
    options?: WriteCallOptions,
  ): Promise<WrittenBy<By, BuiltIn<Model>>>;
  /**
   * Reads, changes and writes the object, with retries on conflict. `change` receives a fresh draft each time and must not
   * depend on earlier decisions. Without a change, nothing is written. A step changes the object once: the write adds an
   * annotation, and a later attempt that finds it changes nothing, so increments are exact (P10).
   * @throws KubeApiError `isConflict` after repeated conflicts, `isNotFound`; KonvergeError `object_replaced` for another uid
   */
  mutate<T extends ApiObject = ApiObject>(
    target: T | ObjectTarget<T>,
    change: (draft: T) => void | Promise<void>,
    options?: MutateCallOptions,
  ): Promise<WrittenBy<By, T>>;
  /** {@link KubeCalls.mutate} through the status subresource. */
  mutateStatus<T extends ApiObject = ApiObject>(
    target: T | ObjectTarget<T>,
    change: (draft: StatusDraft<T>) => void | Promise<void>,
    options?: Omit<MutateCallOptions, "subresource">,
  ): Promise<WrittenBy<By, T>>;
  /**
   * Creates an object, or changes the existing one as `mutate` does, and returns the kind of change. For a new object, the draft
   * has only its kind, name and namespace, so `change` assigns `spec` instead of reading it. The default namespace is that of
   * `ownedBy` or of the reconciled object. A step makes the change once, even if an earlier attempt has created the object.
   * @throws KonvergeError `invalid_owner` if another object controls the existing one; the errors of `mutate`
   */
  createOrUpdate<T extends ApiObject>(
    type: ResourceType<T>,
    name: string | NamespacedName,
    change: (draft: T) => void | Promise<void>,
    options?: CreateOrUpdateOptions,
  ): Promise<CreateOrUpdateResult<WrittenBy<By, T>>>;
  /**
   * Sets the number of replicas through the subresource `scale`, and returns it. A step returns the reference of the object. A
   * repeated call sets the same number again.
   * @throws KonvergeError `invalid_request` if the kind has no such subresource, or for an invalid number
   */
  scale(
    target: ObjectTarget,
    replicas: number,
    options?: WriteCallOptions,
  ): Promise<WrittenBy<By, Scale>>;
  /** Reads the subresource `scale`: desired and actual replicas, and the selector of the Pods. */
  readScale(target: ObjectTarget): Promise<ReadBy<By, Scale>>;
  /**
   * Deletes exactly this object, not a successor with the same name. Succeeds if the object does not exist. A name deletes the
   * current object, so pass the object or a reference if the call may run again. Finalizers may take longer than the call.
   * The undo of a step deletes only what its step created: by name, only an object with the mark of that step; by reference, no
   * object that the step only changed.
   */
  delete(target: ObjectTarget, options?: DeleteCallOptions): Promise<void>;
  /**
   * Deletes all objects of a kind that match the selectors, by default in the reconciled object's namespace. Returns their
   * number. A retried step also deletes objects that were created since.
   * @throws KonvergeError `invalid_request` without a selector, unless `all` is true
   */
  deleteCollection(
    type: ResourceType | KindName,
    options: DeleteCollectionOptions,
  ): Promise<number>;
  /**
   * Evicts a Pod if its disruption budgets allow it. With an object or a reference, it never evicts another Pod with the same
   * name. Succeeds if the Pod is already deleted or replaced. While a budget forbids the eviction, a step is retried without
   * counting attempts.
   * @throws KubeApiError 429 while a disruption budget forbids it
   */
  evict(pod: ObjectTarget, options?: EvictOptions): Promise<void>;
  /**
   * Records a Kubernetes Event about an object (events.k8s.io/v1), which `kubectl describe` and `kubectl events` show. An equal
   * event within 6 minutes increases the count of the first one. An object gets up to 25 different events at once, and one more
   * per 5 minutes; further ones are dropped. An event never fails the caller: an error of the API server is logged.
   */
  event(about: ObjectTarget, event: EventInput): Promise<void>;
  /** Reads the log of a container. Requires the permission `get` of `pods/log`. */
  logs(pod: ObjectTarget, options?: LogOptions): Promise<string>;
  /**
   * Sends any other request unchanged. It passes the guard and is recorded. A write without `metadata.resourceVersion`
   * overwrites changes that were not read, and a retried step sends it again. It cannot stream (`watch`, `follow`).
   */
  raw(request: Omit<RawRequest, "signal">): Promise<RawResponse>;
  /**
   * Returns an instance of a generated API class of `@kubernetes/client-node`, such as `CoreV1Api`, whose requests are calls of
   * this attempt. As with a KubeConfig, writes without a resourceVersion overwrite changes that were not read, and errors are of
   * the class ApiException, which all predicates accept. It cannot stream (`watch`, `follow`). A retried step repeats its
   * requests, because they do not detect their own effect.
   */
  api<Api>(type: ClientNodeApi<Api>): Api;
}

/** The result of `createOrUpdate`. */
export interface CreateOrUpdateResult<T> {
  /** `unchanged`: nothing was written. */
  readonly kind: "created" | "updated" | "unchanged";
  /** The object after the call; in a step, its reference. */
  readonly object: T;
}

/** The subresource `scale` of an object. */
export interface Scale extends ApiObject {
  /** The desired number; absent for 0. */
  spec?: { replicas?: number };
  /** The actual number, and the selector of the Pods. */
  status?: { replicas: number; selector?: string };
}
