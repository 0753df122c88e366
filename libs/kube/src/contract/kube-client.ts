import type {
  ApiObject,
  JsonObject,
  JsonValue,
  BackoffPolicy,
  ObjectMeta,
  ResourceType,
} from "@konverge/core";
import type { CallScope } from "./call-record.ts";
import type { NamespacedName } from "../names/resource-path.ts";
import type { ReadBasis } from "./read-basis.ts";
import type { WatchEvent, WatchOptions } from "./watch-event.ts";

/** What all calls may say. */
export interface CallOptions {
  /** Aborts this call, beside the scope's own signal. */
  readonly signal?: AbortSignal;
}

export interface GetOptions extends CallOptions {
  /** Not older than this, from the server's watch cache; cheaper than the newest. Only a version of the same resource. */
  readonly resourceVersion?: string;
  readonly subresource?: string;
}

export interface ListOptions extends CallOptions {
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects per page. Default 500. Small pages cost calls; huge ones cost memory on both sides. */
  readonly limit?: number;
  /** `0`: any state that the server has at hand; else not older than this. Default: the newest. */
  readonly resourceVersion?: string;
}

export interface ObjectList<T> {
  /** Each with its apiVersion and kind, which servers leave out in lists. */
  readonly items: T[];
  /** Version at which to begin a watch. */
  readonly resourceVersion: string;
}

export interface ListPageOptions extends ListOptions {
  /** From the page before. */
  readonly continueToken?: string;
}

export interface ObjectPage<T> extends ObjectList<T> {
  /** Absent on the last page. */
  readonly continueToken?: string;
  /** Estimate; servers leave it out with selectors. */
  readonly remainingItemCount?: number;
}

/** An object to create: apiVersion and kind come from its type, and the server fills in the rest. */
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
  /** Overwrite whatever is there, changes that nobody read included (P3). */
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
   * Write without having read. Else a merge or strategic patch must carry `metadata.resourceVersion`, and a JSON Patch a
   * `test`, or a `replace` of `/metadata/resourceVersion` (P3).
   */
  readonly unguarded?: boolean;
}

export interface ApplyOptions extends CallOptions {
  readonly force?: boolean;
  readonly subresource?: string;
}

export interface DeleteOptions extends CallOptions {
  /** Delete this object only, not a successor of the same name. */
  readonly uid?: string;
  /** Delete only what was read. */
  readonly resourceVersion?: string;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

export interface MutateOptions extends CallOptions {
  readonly subresource?: "status" | "scale";
  /**
   * How lost updates are prevented. `guarded` (default): a merge patch of the difference that carries version and uid, so any
   * other write in between is a conflict. `fields`: a JSON Patch that tests what the function read and wrote, so only a
   * change of just that is one. A list is one value, and so is an object whose members were enumerated (keys, spread, JSON).
   */
  readonly strategy?: "guarded" | "fields";
  /** What the first try starts from. Default: the newest version. */
  readonly basis?: ReadBasis;
  /**
   * Tries after a conflict, inside this call. Default: again at once, then full jitter around the measured time from read
   * to commit, 8 tries in all. `none` throws the first conflict.
   */
  readonly retry?: BackoffPolicy | "none";
  /** Refuse a successor of the same name. */
  readonly uid?: string;
}

export interface MutateResult<T> {
  /** `unchanged`: nothing was written, or the server had it so already. */
  readonly kind: "updated" | "unchanged";
  readonly object: T;
  /** Times that the change was made, at least 1. */
  readonly tries: number;
  /** Of them, those that lost a race. */
  readonly lost: number;
  /** Version on which the change was built. */
  readonly beforeVersion: string;
  /** The object on which the change was built; absent when nothing was written. */
  readonly before?: T;
  /** The merge patch that landed, without its preconditions; for sensitive kinds its values are redacted (P12). */
  readonly patch?: JsonObject;
}

/** A draft is changed in place; it may run many times and must depend on nothing decided before. */
export type ChangeDraft<T> = (draft: T) => void | Promise<void>;

export interface RawRequest extends CallOptions {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the server's root, for example `/version`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: JsonValue;
  /** Default `application/json`. */
  readonly contentType?: string;
}

export interface RawResponse {
  readonly status: number;
  /** JSON where the server says so, else the text. */
  readonly body: JsonValue;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface DiscoveredResource extends ResourceType {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly verbs: readonly string[];
  /** For example `status` and `scale`. */
  readonly subresources: readonly string[];
}

export interface ServerVersion {
  /** For example `v1.36.3`. */
  readonly gitVersion: string;
  readonly major: string;
  readonly minor: string;
  readonly platform: string;
}

/**
 * Calls one API server. Every call asks the gate first. Objects are raw JSON: unknown fields and 64-bit integers are there.
 * All calls throw KubeApiError for what the server refuses, KonvergeError `kube_unreachable` or `kube_timeout` without an
 * answer, `deferred` when the gate says no, `invalid_request` for what could never be sent, and the signal's reason.
 */
export interface KubeClient {
  /** URL of the API server. */
  readonly server: string;
  get<T extends ApiObject>(
    type: ResourceType<T>,
    target: NamespacedName,
    options?: GetOptions,
  ): Promise<T>;
  /** All pages. */
  list<T extends ApiObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>>;
  /** One page. */
  listPage<T extends ApiObject>(
    type: ResourceType<T>,
    options?: ListPageOptions,
  ): Promise<ObjectPage<T>>;
  create<T extends ApiObject>(
    type: ResourceType<T>,
    object: T | NewObject<T>,
    options?: CallOptions,
  ): Promise<T>;
  /** PUT. Refuses an object without resourceVersion unless `unguarded`. */
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
  /** Server-side apply under the field manager of the scope, else of the client. */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: T | NewObject<T>,
    options?: ApplyOptions,
  ): Promise<T>;
  delete(type: ResourceType, target: NamespacedName, options?: DeleteOptions): Promise<void>;
  /**
   * Read, change, write under optimistic concurrency (P3, P4).
   * @throws KubeApiError `isConflict` when all tries lost; KonvergeError `object_replaced`; `invalid_draft` for a draft that
   * cannot be written; whatever `change` throws
   */
  mutate<T extends ApiObject>(
    type: ResourceType<T>,
    target: NamespacedName,
    change: ChangeDraft<T>,
    options?: MutateOptions,
  ): Promise<MutateResult<T>>;
  /** One watch, until the server ends it. What lasts longer is a reflector's. */
  watch<T extends ApiObject>(
    type: ResourceType<T>,
    options?: WatchOptions,
  ): AsyncIterable<WatchEvent<T>>;
  /** Any other call, through the gate as well. */
  raw(request: RawRequest): Promise<RawResponse>;
  /** What the server serves under an apiVersion; remembered until it answers that a resource does not exist. */
  discover(apiVersion: string): Promise<readonly DiscoveredResource[]>;
  /** @throws KonvergeError `not_found` when the server does not serve the kind */
  resolveType(apiVersion: string, kind: string): Promise<DiscoveredResource>;
  serverVersion(): Promise<ServerVersion>;
  /** True when objects of the type hold secrets, so that none of their content may be recorded (P12). */
  isSensitive(type: Pick<ResourceType, "group" | "resource" | "sensitive">): boolean;
  /** The same client, calling in another way. Scopes nest: what is given replaces, signals add up. */
  scoped(scope: CallScope): KubeClient;
  /** Ends all calls and watches, of all scopes. */
  close(): Promise<void>;
}
