import { isJsonObject, jsonEquals, type JsonObject } from "@konverge/core";
import { badRequest, forbiddenByServer, notFound } from "../errors/status-error.ts";
import { isTerminating, metadataOf, objectsOf, setOrDelete, textOf } from "../objects/metadata.ts";
import type { Call } from "./call.ts";

/**
 * Sets the object's namespace to that of the request.
 * @throws StatusError 400 if the object has another one
 */
export function matchNamespace({ kind, namespace }: Call, object: JsonObject): void {
  const metadata = metadataOf(object);
  const own = textOf(metadata, "namespace");
  if (!kind.namespaced) delete metadata["namespace"];
  else if (own === "") metadata["namespace"] = namespace;
  else if (own !== namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
}

/** @throws StatusError 400 if the object has another name than the URL, or none */
export function matchName({ name }: Call, object: JsonObject): void {
  const own = textOf(metadataOf(object), "name");
  if (own === "") {
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (own !== name) {
    throw badRequest(
      `the name of the object (${own}) does not match the name on the URL (${name})`,
    );
  }
}

/**
 * Rejects a creation in a namespace that does not exist or is being deleted.
 * @throws StatusError 404 or 403
 */
export function requireLiveNamespace({ state, kind, namespace }: Call, name: string): void {
  if (!kind.namespaced) return;
  const found = state.store.table("namespaces").get(namespace);
  if (found === undefined) throw notFound({ group: "", resource: "namespaces" }, namespace);
  if (!isTerminating(found.object)) return;
  throw forbiddenByServer(
    kind,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
    [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  );
}

/** Removes duplicate owner references, with a warning. */
export function dedupOwners({ warnings }: Call, object: JsonObject): void {
  const metadata = metadataOf(object);
  const owners = objectsOf(metadata, "ownerReferences");
  const kept: JsonObject[] = [];
  const dropped: string[] = [];
  for (const owner of owners) {
    if (kept.some((one) => jsonEquals(one, owner))) dropped.push(textOf(owner, "uid"));
    else kept.push(owner);
  }
  if (dropped.length === 0) return;
  metadata["ownerReferences"] = kept;
  warnings.push(
    `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${dropped.join(", ")}`,
  );
}

/** Go's zero values of metadata: `null` and an empty name are equivalent to absence. */
export function normalizeMetadata(object: JsonObject): void {
  const metadata = metadataOf(object);
  for (const [key, value] of Object.entries(metadata)) {
    const isEmptyMap = isJsonObject(value) && Object.keys(value).length === 0;
    const isEmptyList = Array.isArray(value) && value.length === 0 && key !== "managedFields";
    if (value === null || value === "" || isEmptyMap || isEmptyList) {
      setOrDelete(metadata, key, undefined);
    }
  }
}
