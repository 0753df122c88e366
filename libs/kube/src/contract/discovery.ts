import type { JsonValue, ResourceType } from "@konverge/core";

export interface DiscoveredResource extends ResourceType {
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly verbs: readonly string[];
  /** For example `status` and `scale`. */
  readonly subresources: readonly string[];
}

/** The served resources, cached per apiVersion. */
export interface Discovery {
  discover(apiVersion: string, fetch: FetchResources): Promise<readonly DiscoveredResource[]>;
  resolveType(apiVersion: string, kind: string, fetch: FetchResources): Promise<DiscoveredResource>;
  /** Drops a group version from the cache, after a response that a resource does not exist. */
  forget(group: string, version: string): void;
}

/** Fetches the APIResourceList of an apiVersion. */
export type FetchResources = (apiVersion: string) => Promise<JsonValue>;
