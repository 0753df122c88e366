import { resourceId } from "@konverge/core";
import type { KindRegistry } from "../kinds/kind-registry.ts";
import type { ResourceKind, Subresource } from "../kinds/resource-kind.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import type { ObjectTable } from "../storage/object-table.ts";
import { StoredObject } from "../storage/stored-object.ts";

/** The state shared by all requests. */
export interface ServerState {
  readonly store: ObjectStore;
  readonly kinds: KindRegistry;
  /** Unix time in ms. */
  readonly now: () => number;
  /** How long a read waits for a version that does not exist yet, in ms; 3 s in the real server. */
  readonly freshnessLimitMs: number;
  /** Time between bookmarks of a watch, in ms; about a minute in the real server. */
  readonly bookmarkEveryMs: number;
}

/** One request for a resource, with its parsed path and headers. */
export interface Call {
  readonly state: ServerState;
  readonly kind: ResourceKind;
  readonly table: ObjectTable;
  /** Empty for a cluster-scoped kind, and for a list of all namespaces. */
  readonly namespace: string;
  /** Empty for a collection. */
  readonly name: string;
  readonly subresource: Subresource;
  readonly query: URLSearchParams;
  readonly userAgent: string;
  /** Media type of the body, lower case, without parameters; empty if none was sent. */
  readonly contentType: string;
  readonly body: string;
  /** Texts for the Warning header. */
  readonly warnings: string[];
}

/** The response of a verb. The body is JSON text, because stored objects cache theirs. */
export interface Answer {
  readonly code: number;
  readonly text: string;
}

export const keyOf = (
  { kind, namespace }: Pick<Call, "kind" | "namespace">,
  name: string,
): string => (kind.namespaced ? `${namespace}/${name}` : name);

export const tableOf = (state: ServerState, kind: ResourceKind): ObjectTable =>
  state.store.table(resourceId(kind.storedAs ?? kind));

/** Returns a stored object in this version of its kind; converted once for all readers. */
export function viewOf(kind: ResourceKind, stored: StoredObject): StoredObject {
  const known = stored.views.get(kind);
  if (known !== undefined) return known;
  const seen = kind.view(stored.object);
  const view = seen === stored.object ? stored : new StoredObject(stored.key, stored.version, seen);
  stored.views.set(kind, view);
  return view;
}

/** Returns the object's JSON as a response. */
export const answerObject = (kind: ResourceKind, stored: StoredObject, code = 200): Answer => ({
  code,
  text: viewOf(kind, stored).text,
});
