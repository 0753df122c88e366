import type { JsonValue } from "./lossless-json.ts";

/** Names one object of a cluster. */
export interface ResourceRef {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
  /** Once known, writes refuse to touch a successor of the same name. */
  readonly uid?: string;
}

/** A kind of object as the API server serves it. `T` is the shape of its objects; it exists for the compiler alone. */
export interface ResourceType<T extends ApiObject = ApiObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly scope: "Namespaced" | "Cluster";
  /** True when its objects hold secrets: nothing of their content may be recorded, logged or carried over. */
  readonly sensitive?: boolean;
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

/** Any Kubernetes object, as the API server sent it: fields that we do not know are there too. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** `apps/v1` -> group and version; `v1` -> the core group. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  if (slash === -1) return { group: "", version: apiVersion };
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** The inverse of {@link parseApiVersion}. */
export function formatApiVersion(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}
