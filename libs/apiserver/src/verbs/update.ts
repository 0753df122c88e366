import { formatApiVersion, isJsonObject, jsonEquals, type JsonObject } from "@konverge/core";
import { invalid } from "../errors/field-error.ts";
import { conflict, invalidObject, notFound, staleVersion } from "../errors/status-error.ts";
import { trackUpdate } from "../fields/field-manager.ts";
import { isReleased } from "../kinds/namespace.ts";
import { unqualifiedFinalizerWarnings } from "../objects/finalizer-rules.ts";
import {
  finalizersOf,
  generationOf,
  isTerminating,
  metadataOf,
  nameOf,
  setOrDelete,
  uidOf,
  versionOf,
} from "../objects/metadata.ts";
import { validateMetadata, validateMetadataUpdate } from "../objects/metadata-validation.ts";
import { StoredObject } from "../storage/stored-object.ts";
import { answerObject, keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { storeNew, trackCreation } from "./create.ts";
import { decodeBody } from "./decode-body.ts";
import { dedupOwners, matchName, matchNamespace, normalizeMetadata } from "./object-identity.ts";
import { readWriteOptions, type WriteOptions } from "./write-options.ts";

/** PUT of an object, of its status, or of a namespace's finalizers. */
export function updateObject(call: Call): Answer {
  const options = readWriteOptions("UpdateOptions", call.query, call.userAgent);
  const { kind, name, table } = call;
  const next = decodeBody(call, kind, options);
  matchNamespace(call, next);
  matchName(call, next);
  dedupOwners(call, next);
  normalizeMetadata(next);
  const stored = table.get(keyOf(call, name));
  if (stored === undefined) {
    if (!kind.createsOnUpdate || call.subresource !== "") throw notFound(kind, name);
    trackCreation(call, next, options);
    return answerObject(kind, storeNew(call, next, options), 201);
  }
  const live = viewOf(kind, stored);
  checkUid(call, next, live.object);
  track(call, next, live.object, options);
  return answerObject(kind, storeNext(call, next, stored, options));
}

/** Tracks a change that is not an apply. */
export function track(call: Call, next: JsonObject, live: JsonObject, options: WriteOptions): void {
  const { kind, subresource, state } = call;
  trackUpdate(live, next, {
    schema: kind.schema,
    blank: kind.blank,
    apiVersion: formatApiVersion(kind.group, kind.version),
    subresource,
    resetFields: kind.resetFields(subresource),
    manager: options.manager,
    nowMs: state.now(),
  });
}

/**
 * Stores a changed object: checks its base version, keeps the fields that clients cannot set, validates. An unchanged
 * object is not written; a terminating one without finalizers is removed.
 */
export function storeNext(
  call: Call,
  next: JsonObject,
  stored: StoredObject,
  { isDryRun }: Pick<WriteOptions, "isDryRun">,
): StoredObject {
  const { kind, subresource, state, table } = call;
  const live = viewOf(kind, stored).object;
  checkVersion(call, next, live);
  const metadata = metadataOf(next);
  const liveMetadata = metadataOf(live);
  setOrDelete(metadata, "generation", liveMetadata["generation"]);
  kind.prepareUpdate(next, live, subresource);
  if (uidOf(next) === "") metadata["uid"] = uidOf(live);
  setOrDelete(metadata, "creationTimestamp", liveMetadata["creationTimestamp"]);
  if (isTerminating(live)) {
    metadata["deletionTimestamp"] = liveMetadata["deletionTimestamp"] ?? "";
    const grace = liveMetadata["deletionGracePeriodSeconds"];
    if (grace !== undefined) metadata["deletionGracePeriodSeconds"] ??= grace;
  }
  const errors = [
    ...validateMetadata(next, kind.namespaced, kind.nameErrors),
    // Reported twice, as in the real server: by the rules of all kinds, and by the kind.
    ...validateMetadataUpdate(next, live),
    ...validateMetadataUpdate(next, live),
    ...kind.validateUpdate(next, live, subresource, call.warnings),
  ];
  if (errors.length > 0) throw invalidObject(kind, nameOf(next), errors);
  if (kind.isCustom) call.warnings.push(...unqualifiedFinalizerWarnings(next, live));
  if (sameButForTimes(next, live)) return stored;
  const object = kind.toStorage(next);
  const isGone = isTerminating(live) && finalizersOf(next).length === 0 && canGo(call, next, live);
  if (isDryRun) return new StoredObject(stored.key, stored.version, object);
  if (!isGone) return state.store.put(table, stored.key, object);
  const removed = state.store.remove(table, stored.key, object);
  // The response contains the submitted object, before the version of the deletion.
  return new StoredObject(stored.key, stored.version, {
    ...removed.object,
    metadata: { ...metadataOf(removed.object), resourceVersion: versionOf(live) },
  });
}

function canGo({ kind }: Call, next: JsonObject, live: JsonObject): boolean {
  if (kind.resource === "namespaces" && kind.group === "") return isReleased(next);
  const grace = metadataOf(live)["deletionGracePeriodSeconds"];
  return grace === undefined || grace === 0;
}

function checkVersion({ kind, name }: Call, next: JsonObject, live: JsonObject): void {
  const version = versionOf(next);
  // Go cannot parse it as a number.
  if (version !== "" && !/^\d+$/.test(version)) {
    throw invalidObject(kind, name, [
      invalid("metadata.resourceVersion", version, "invalid resource version"),
    ]);
  }
  if (version === "" || version === "0") {
    if (kind.updatesUnconditionally) metadataOf(next)["resourceVersion"] = versionOf(live);
    else {
      const error = invalid("metadata.resourceVersion", 0, "must be specified for an update");
      throw invalidObject({ group: kind.group, kind: kind.resource }, name, [error]);
    }
  } else if (version !== versionOf(live)) throw staleVersion(kind, name);
}

/** The uid of a PUT is a precondition, which the storage checks with its own text. @throws StatusError 409 */
export function checkUid(
  { kind, name, namespace }: Call,
  next: JsonObject,
  live: JsonObject,
): void {
  const uid = uidOf(next);
  if (uid === "" || uid === uidOf(live)) return;
  const group = kind.isCustom || kind.group === "apiextensions.k8s.io" ? `${kind.group}/` : "";
  const key = `/registry/${group}${kind.resource}/${keyOf({ kind, namespace }, name)}`;
  throw conflict(
    kind,
    name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${uidOf(live)}`,
  );
}

/** Returns true if nothing changed, or only the times of managedFields entries. */
function sameButForTimes(next: JsonObject, live: JsonObject): boolean {
  return (
    generationOf(next) === generationOf(live) && jsonEquals(withoutTimes(next), withoutTimes(live))
  );
}

function withoutTimes(object: JsonObject): JsonObject {
  const metadata = metadataOf(object);
  const entries = metadata["managedFields"];
  if (!Array.isArray(entries)) return object;
  const timeless = entries.map((entry) => {
    if (!isJsonObject(entry)) return entry;
    const { time: _, ...rest } = entry;
    return rest;
  });
  return { ...object, metadata: { ...metadata, managedFields: timeless } };
}
