import {
  KonvergeError,
  parseApiVersion,
  type ApiObject,
  type ObjectMeta,
  type OwnerReference,
} from "@konverge/core";

/** An owned object: a draft, or one to be created. */
export interface Owned {
  readonly kind?: string;
  metadata: Partial<ObjectMeta>;
}

/**
 * Makes `owner` the controller of an object: the owner is reconciled when the object changes, and the object is deleted
 * with it. A reference to the same owner with another version or uid is updated in place. Returns whether anything
 * changed.
 * @throws KonvergeError `invalid_owner` if another controller owns it, or the owner is in another namespace
 */
export function setControllerReference(object: Owned, owner: ApiObject): boolean {
  const other = object.metadata.ownerReferences?.find(
    (reference) => reference.controller === true && !isSameOwner(reference, owner),
  );
  if (other !== undefined) {
    throw invalid(
      object,
      owner,
      `${other.kind} "${other.name}" already controls it; an object has one controller, use setOwnerReference for other owners`,
    );
  }
  return setReference(object, owner, { controller: true, blockOwnerDeletion: true });
}

/** Like {@link setControllerReference}, for an owner that does not control the object. */
export function setOwnerReference(object: Owned, owner: ApiObject): boolean {
  return setReference(object, owner, {});
}

/** Returns the reference to the object's controller, if it has one. */
export function ownerOf(object: Owned): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find(({ controller }) => controller === true);
}

function setReference(
  object: Owned,
  owner: ApiObject,
  flags: Pick<OwnerReference, "controller" | "blockOwnerDeletion">,
): boolean {
  const { namespace, name, uid } = owner.metadata;
  if (uid === undefined || uid === "") {
    throw invalid(object, owner, "the owner has no uid; read it from the API server first");
  }
  if (namespace !== undefined && object.metadata.namespace !== namespace) {
    throw invalid(
      object,
      owner,
      object.metadata.namespace === undefined
        ? `a cluster-scoped object cannot have an owner in namespace "${namespace}"`
        : `owner and object must be in the same namespace (got "${namespace}" and "${object.metadata.namespace}")`,
    );
  }
  const references = (object.metadata.ownerReferences ??= []);
  const known = references.find((reference) => isSameOwner(reference, owner));
  const wanted: OwnerReference = {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name,
    uid,
    ...flags,
  };
  if (known === undefined) {
    references.push(wanted);
    return true;
  }
  const changed = Object.entries(wanted).some(
    ([field, value]) => known[field as keyof OwnerReference] !== value,
  );
  Object.assign(known, wanted);
  return changed;
}

/** Compares group, kind and name: the same owner may have another version or uid, which is then updated. */
function isSameOwner(reference: OwnerReference, owner: ApiObject): boolean {
  return (
    parseApiVersion(reference.apiVersion).group === parseApiVersion(owner.apiVersion).group &&
    reference.kind === owner.kind &&
    reference.name === owner.metadata.name
  );
}

function invalid(object: Owned, owner: ApiObject, reason: string): KonvergeError {
  return new KonvergeError(
    "invalid_owner",
    `${owner.kind} "${owner.metadata.name}" cannot own ${object.kind ?? "object"} "${object.metadata.name ?? ""}": ${reason}`,
  );
}

/** @throws KonvergeError `invalid_request` for an owner that was not read: without its uid, every object would match */
export function ownerUidOf(ownedBy: ApiObject | undefined): string | undefined {
  if (ownedBy === undefined) return undefined;
  const { kind, metadata } = ownedBy;
  if (metadata.uid !== undefined && metadata.uid !== "") return metadata.uid;
  const detail = "has no metadata.uid; pass an object that was read";
  throw new KonvergeError("invalid_request", `ownedBy: ${kind} "${metadata.name}" ${detail}`, {
    issues: [{ pointer: "/ownedBy", detail }],
  });
}
