import type { DiscoveredResource } from "./discovery.ts";
import type {
  ApiObject,
  JsonObject,
  JsonValue,
  BackoffPolicy,
  ObjectMeta,
  ResourceType,
} from "@konverge/core";
import type { CallScope } from "./call-record.ts";
import type { ClientNodeApi, ForwardAnswer, ForwardRequest } from "./forward.ts";
import type { NamespacedName } from "../names/resource-path.ts";
import type { ReadBasis } from "./read-basis.ts";
import type { WatchEvent, WatchOptions } from "./watch-event.ts";

/** Options of all calls. */
export interface CallOptions {
  /** Aborts this call, in addition to the scope's own signal. */
  readonly signal?: AbortSignal;
}

export interface GetOptions extends CallOptions {
  /**
   * Minimum version, read from the server's watch cache; cheaper than the newest. Must be a version of the same
   * resource.
   */
  readonly resourceVersion?: string;
  readonly subresource?: string;
}

export interface ListOptions extends CallOptions {
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Objects per page. Default: 250 at first, then 8 MiB by the size of the latest page, at most 500. Small pages cost calls;
   * large pages cost memory on both sides. 0 reads the list in one piece.
   */
  readonly limit?: number;
  /** `0`: any cached state of the server; otherwise the minimum version. Default: the newest. */
  readonly resourceVersion?: string;
}

export interface ObjectList<T> {
  /** Each with its apiVersion and kind, which servers omit from lists. */
  readonly items: T[];
  /** Version at which to start a watch. */
  readonly resourceVersion: string;
}

export interface ListPageOptions extends ListOptions {
  /** From the previous page. */
  readonly continueToken?: string;
}

export interface ObjectPage<T> extends ObjectList<T> {
  /** Absent on the last page. */
  readonly continueToken?: string;
  /** An estimate; servers omit it with selectors. */
  readonly remainingItemCount?: number;
}

/** An object to create. Its type provides apiVersion and kind; the server adds the rest. */
export type NewObject<T extends ApiObject> = DeepPartial<Omit<T, "metadata">> & {
  readonly metadata: Partial<ObjectMeta>;
};
export type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [Field in keyof T]?: DeepPartial<T[Field]> | undefined }
    : T;

export interface ReplaceOptions extends CallOptions {
  readonly subresource?: string;
  /** Overwrite the object, including changes that were not read (P3). */
  readonly unguarded?: boolean;
}

export interface Patch {
  readonly type: "json" | "merge" | "strategic" | "apply";
  readonly body: JsonValue;
}

export interface PatchOptions extends CallOptions {
  readonly subresource?: string;
  /** `apply` only: take fields from other managers. */
  readonly force?: boolean;
  /**
   * Write without a preceding read. Otherwise a merge or strategic patch must contain `metadata.resourceVersion`, and a
   * JSON Patch a `test`, or a `replace` of `/metadata/resourceVersion` (P3).
   */
  readonly unguarded?: boolean;
  /**
   * The object that the patch is based on. A merge, strategic or JSON Patch then requires its version, an apply its uid, and a
   * conflict is reported with the writers since then, which costs a read.
   */
  readonly read?: ApiObject;
}

export interface ApplyOptions extends CallOptions {
  readonly force?: boolean;
  readonly subresource?: string;
}

export interface DeleteOptions extends CallOptions {
  /** Delete only the object with this uid, not a successor with the same name. */
  readonly uid?: string;
  /** Delete only this version. */
  readonly resourceVersion?: string;
  /**
   * What happens to the objects that it owns: `Background` (default) deletes them afterwards, `Foreground` before, `Orphan`
   * keeps them.
   */
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

export interface DeleteCollectionCall
  extends
    CallOptions,
    Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector">,
    Pick<DeleteOptions, "propagationPolicy" | "gracePeriodSeconds"> {}

export interface MutateOptions extends CallOptions {
  readonly subresource?: "status" | "scale";
  /**
   * How lost updates are prevented. `guarded` (default): a merge patch of the difference with version and uid, so any
   * concurrent write is a conflict. `fields`: a JSON Patch that tests the fields that the function read or wrote, so
   * only a change to them is a conflict. A list is one value, and so is an object whose members were enumerated (keys,
   * spread, JSON).
   */
  readonly strategy?: "guarded" | "fields";
  /** What the first try starts from. Default: the newest version. */
  readonly basis?: ReadBasis;
  /**
   * Retries after a conflict, inside this call. Default: once immediately, then full jitter around the measured time
   * from read to commit, 8 tries in total. `none` throws the first conflict.
   */
  readonly retry?: BackoffPolicy | "none";
  /** Reject a successor with the same name. */
  readonly uid?: string;
}

export interface MutateResult<T> {
  /** `unchanged`: nothing was written, or the server already had the same content. */
  readonly kind: "updated" | "unchanged";
  readonly object: T;
  /** Number of times that the change ran, at least 1. */
  readonly tries: number;
  /** Number of tries that lost a race. */
  readonly lost: number;
  /** Version on which the change was based. */
  readonly beforeVersion: string;
  /** The object on which the change was based; absent if nothing was written. */
  readonly before?: T;
  /** The merge patch that was written, without its preconditions. Values of sensitive kinds are redacted (P12). */
  readonly patch?: JsonObject;
}

/** Changes a draft in place. It may run several times and must not depend on earlier decisions. */
export type ChangeDraft<T> = (draft: T) => void | Promise<void>;

export interface RawRequest extends CallOptions {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path on the server, for example `/version`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: JsonValue;
  /** Default `application/json`. */
  readonly contentType?: string;
}

export interface RawResponse {
  readonly status: number;
  /** Parsed if the content type is JSON, otherwise the text. */
  readonly body: JsonValue;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface ServerVersion {
  /** For example `v1.36.3`. */
  readonly gitVersion: string;
  readonly major: string;
  readonly minor: string;
  readonly platform: string;
}

/**
 * Calls one API server. Every call passes the gate first. Objects are raw JSON, with unknown fields and 64-bit integers
 * intact. All calls throw a KubeApiError for an error response, KonvergeError `kube_unreachable` or `kube_timeout`
 * without a response, `deferred` if the gate rejects the call, `invalid_request` for a call that cannot be sent, and
 * the signal's reason.
 */
export interface KubeClient {
  /** URL of the API server. */
  readonly server: string;
  get<T extends ApiObject>(
    type: ResourceType<T>,
    target: NamespacedName,
    options?: GetOptions,
  ): Promise<T>;
  /** Reads all pages. */
  list<T extends ApiObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>>;
  /** Reads one page. */
  listPage<T extends ApiObject>(
    type: ResourceType<T>,
    options?: ListPageOptions,
  ): Promise<ObjectPage<T>>;
  create<T extends ApiObject>(
    type: ResourceType<T>,
    object: T | NewObject<T>,
    options?: CallOptions,
  ): Promise<T>;
  /** PUT. Rejects an object without resourceVersion unless `unguarded`. */
  replace<T extends ApiObject>(
    type: ResourceType<T>,
    object: T,
    options?: ReplaceOptions,
  ): Promise<T>;
  patch<T extends ApiObject>(
    type: ResourceType<T>,
    target: NamespacedName,
    patch: Patch,
    options?: PatchOptions,
  ): Promise<T>;
  /** Server-side apply under the field manager of the scope, or else of the client. */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: T | NewObject<T>,
    options?: ApplyOptions,
  ): Promise<T>;
  delete(type: ResourceType, target: NamespacedName, options?: DeleteOptions): Promise<void>;
  /** Deletes all objects of a type that match the selectors, and returns them. */
  deleteCollection<T extends ApiObject>(
    type: ResourceType<T>,
    options?: DeleteCollectionCall,
  ): Promise<T[]>;
  /**
   * Reads, changes and writes the object under optimistic concurrency (P3, P4).
   * @throws KubeApiError `isConflict` if all tries conflict; KonvergeError `object_replaced`; `invalid_draft` for a
   * draft that cannot be written; any error of `change`
   */
  mutate<T extends ApiObject>(
    type: ResourceType<T>,
    target: NamespacedName,
    change: ChangeDraft<T>,
    options?: MutateOptions,
  ): Promise<MutateResult<T>>;
  /** Opens one watch, until the server ends it. Use a reflector for longer. */
  watch<T extends ApiObject>(
    type: ResourceType<T>,
    options?: WatchOptions,
  ): AsyncIterable<WatchEvent<T>>;
  /** Sends any other call, through the same gate. */
  raw(request: RawRequest): Promise<RawResponse>;
  /** Sends a request of another client library as it is. Returns error responses instead of throwing them. */
  forward(request: ForwardRequest): Promise<ForwardAnswer>;
  /**
   * Returns a generated API of `@kubernetes/client-node` whose requests are calls of this client. Its errors are those of
   * client-node; all predicates accept them.
   */
  api<Api>(type: ClientNodeApi<Api>): Api;
  /**
   * Returns the resources that the server serves under an apiVersion. Cached until a response reports that a resource
   * does not exist.
   */
  discover(apiVersion: string): Promise<readonly DiscoveredResource[]>;
  /** @throws KonvergeError `not_found` if the server does not serve the kind */
  resolveType(apiVersion: string, kind: string): Promise<DiscoveredResource>;
  serverVersion(): Promise<ServerVersion>;
  /** Returns true if objects of the type hold secrets, so that none of their content may be recorded (P12). */
  isSensitive(type: Pick<ResourceType, "group" | "resource" | "sensitive">): boolean;
  /**
   * Returns the same client with other call options. Scopes nest: given options replace outer ones, signals are
   * combined.
   */
  scoped(scope: CallScope): KubeClient;
  /** Ends all calls and watches, in all scopes. */
  close(): Promise<void>;
}
