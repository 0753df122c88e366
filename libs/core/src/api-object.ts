import type { JsonValue } from "./lossless-json.ts";

/** Identifies an object in a cluster. */
export interface ResourceRef {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
  /** If set, writes reject a recreated object of the same name. */
  readonly uid?: string;
}

/** Selects a part of objects; see {@link ResourceType.keep}. A function must keep the structure of the object. */
// oxlint-disable-next-line typescript/no-explicit-any -- the object's type is that of the resource
type KeptPart = "metadata" | ((object: any) => object);

/** A kind as the API server serves it. `T` is the type of its objects and exists at compile time only. */
export interface ResourceType<T extends ApiObject = ApiObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly scope: "Namespaced" | "Cluster";
  /** True if its objects contain secrets. Their content is never recorded, logged or passed to other writers. */
  readonly sensitive?: boolean;
  /**
   * The part of each object that is read. `metadata`: the API server sends nothing else. A function: the result, with the
   * metadata. Default: the whole object.
   */
  readonly keep?: KeptPart;
  readonly objectType?: T;
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: "Apply" | "Update";
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: { [path: string]: JsonValue };
  subresource?: string;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  generateName?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: ManagedFieldsEntry[];
}

/** A Kubernetes object as the API server sent it, including unknown fields. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** Parses `apps/v1` into group and version; `v1` is the core group. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  if (slash === -1) return { group: "", version: apiVersion };
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** The inverse of {@link parseApiVersion}. */
export function formatApiVersion(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}
