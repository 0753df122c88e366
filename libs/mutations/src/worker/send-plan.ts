import {
  defined,
  diffMergePatch,
  isJsonObject,
  metadataOf,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import type { KubeClient, NamespacedName, NewObject } from "@konverge/kube";
import type { ApplyChange } from "../change/change.ts";
import type { NewMutation } from "../store/mutation-store.ts";

/** No object has this version, so an apply with it either creates the object or is rejected. */
const NO_VERSION = "1";

/** The object of a batch, as a client addresses it. */
export interface Target {
  readonly client: KubeClient;
  readonly type: ResourceType;
  readonly at: NamespacedName;
  readonly subresource: NewMutation["subresource"];
}

/** Writes the draft onto the version that was read, or creates the object. */
export async function sendDraft(
  { client, type, at, subresource }: Target,
  read: JsonObject | undefined,
  draft: JsonObject,
): Promise<JsonObject> {
  if (read === undefined)
    return json(await client.create(type, draft as unknown as NewObject<ApiObject>));
  const patch = diffMergePatch(read, draft) ?? {};
  const metadata = isJsonObject(patch["metadata"]) ? patch["metadata"] : {};
  const body = { ...patch, metadata: { ...metadata, ...guardOf(read) } };
  const options = subresource === undefined ? {} : { subresource };
  return json(await client.patch(type, at, { type: "merge", body }, options));
}

/** Applies onto the version that was read, or onto absence. */
export async function sendApply(
  { client, type, subresource }: Target,
  read: JsonObject | undefined,
  { object, fieldManager, force = false }: ApplyChange,
): Promise<JsonObject> {
  const guard = read === undefined ? { resourceVersion: NO_VERSION } : guardOf(read);
  const intent = { ...object, metadata: { ...metadataOf(object), ...guard } };
  const scoped = client.scoped({ fieldManager });
  const options = { force, ...defined({ subresource }) };
  return json(await scoped.apply(type, intent, options));
}

function guardOf(read: JsonObject): JsonObject {
  const { uid, resourceVersion } = metadataOf(read);
  return {
    ...defined({ uid, resourceVersion }),
  };
}

function json(object: ApiObject): JsonObject {
  return object as unknown as JsonObject;
}
