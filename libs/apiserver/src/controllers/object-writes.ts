import { resourceId, type JsonObject } from "@konverge/core";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { metadataOf, textOf } from "../objects/metadata.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { tableOf, type Call, type ServerState } from "../verbs/call.ts";
import { deleteObject } from "../verbs/delete.ts";
import { updateObject } from "../verbs/update.ts";

/** Field manager of the writes. */
const USER_AGENT = "kube-controller-manager/konverge";

/** A stored object with the kind that serves it. */
export interface KnownObject {
  readonly kind: ResourceKind;
  readonly stored: StoredObject;
}

/** Returns the kind under which the objects of a table are served; undefined if their definition was deleted. */
export function kindOfTable(state: ServerState, table: string): ResourceKind | undefined {
  return state.kinds.all().find((kind) => resourceId(kind.storedAs ?? kind) === table);
}

/** Deletes an object by the rules of DELETE. */
export function remove(state: ServerState, known: KnownObject, options: JsonObject): void {
  deleteObject(callFor(state, known, JSON.stringify(options)));
}

/** Replaces an object, or a subresource of it, by the rules of PUT. */
export function replace(
  state: ServerState,
  known: KnownObject,
  next: JsonObject,
  subresource: Call["subresource"] = "",
): void {
  const body = JSON.stringify(known.kind.view(next));
  updateObject({ ...callFor(state, known, body), subresource });
}

function callFor(state: ServerState, { kind, stored }: KnownObject, body: string): Call {
  const metadata = metadataOf(stored.object);
  return {
    state,
    kind,
    table: tableOf(state, kind),
    namespace: kind.namespaced ? textOf(metadata, "namespace") : "",
    name: textOf(metadata, "name"),
    subresource: "",
    query: new URLSearchParams(),
    userAgent: USER_AGENT,
    contentType: "application/json",
    body,
    warnings: [],
  };
}
