import { isJsonObject, KonvergeError, type ApiObject, type JsonValue } from "@konverge/core";
import { parseBody } from "@konverge/kube";

const OWNERS = "ownerReferences";

/**
 * Rejects a request to another cluster that makes the reconciled object an owner: the garbage collector there would delete the
 * owned object, because its owner does not exist.
 * @throws KonvergeError `invalid_owner`
 */
export function assertNotOwner(object: ApiObject | undefined, body: string): void {
  const uid = object?.metadata.uid;
  // The uid may be there for another reason, such as a label.
  if (object === undefined || uid === undefined || !body.includes(uid)) return;
  if (!ownersIn(parseBody(body)).some((owner) => isJsonObject(owner) && owner["uid"] === uid))
    return;
  throw new KonvergeError(
    "invalid_owner",
    `${object.kind} "${object.metadata.name}" is in another cluster and cannot own an object there; use a label, and delete the object in cleanup`,
  );
}

/** The owner references of an object, of a merge patch or of a JSON patch. */
function ownersIn(content: JsonValue | undefined): readonly JsonValue[] {
  if (Array.isArray(content)) return content.flatMap(ownersOfOperation);
  const metadata = isJsonObject(content) ? content["metadata"] : undefined;
  return isJsonObject(metadata) ? listed(metadata[OWNERS]) : [];
}

function ownersOfOperation(operation: JsonValue): readonly JsonValue[] {
  if (!isJsonObject(operation)) return [];
  const { path, value } = operation;
  if (path === "/metadata" && isJsonObject(value)) return listed(value[OWNERS]);
  return typeof path === "string" && path.startsWith(`/metadata/${OWNERS}`) ? listed(value) : [];
}

function listed(value: JsonValue | undefined): readonly JsonValue[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}
