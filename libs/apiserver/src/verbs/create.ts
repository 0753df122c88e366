import { randomInt, randomUUID } from "node:crypto";
import { formatApiVersion, type JsonObject } from "@konverge/core";
import {
  alreadyExists,
  beingDeleted,
  forbiddenByServer,
  generateNameConflict,
  invalidObject,
  unconverted,
} from "../errors/status-error.ts";
import { trackUpdate } from "../fields/field-manager.ts";
import { unqualifiedFinalizerWarnings } from "../objects/finalizer-rules.ts";
import { formatTime, isTerminating, metadataOf, nameOf, textOf } from "../objects/metadata.ts";
import { validateMetadata } from "../objects/metadata-validation.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { StoredObject as Stored } from "../storage/stored-object.ts";
import { answerObject, keyOf, type Answer, type Call } from "./call.ts";
import { decodeBody } from "./decode-body.ts";
import {
  dedupOwners,
  matchNamespace,
  normalizeMetadata,
  requireLiveNamespace,
} from "./object-identity.ts";
import { readWriteOptions, type WriteOptions } from "./write-options.ts";

/** Set only by the server; values from a client are removed. */
const SYSTEM_MEMBERS = [
  "creationTimestamp",
  "deletionGracePeriodSeconds",
  "deletionTimestamp",
  "selfLink",
  "uid",
];
/** Number of names that are tried for one `generateName`. */
const NAME_TRIES = 8;
// No vowels and no similar characters, to avoid words and confusion.
const NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789";
const NAME_BASE_LENGTH = 58;

/** POST of an object. */
export function createObject(call: Call): Answer {
  const options = readWriteOptions("CreateOptions", call.query, call.userAgent);
  const object = decodeBody(call, call.kind, options);
  const metadata = metadataOf(object);
  for (const member of SYSTEM_MEMBERS) delete metadata[member];
  matchNamespace(call, object);
  dedupOwners(call, object);
  normalizeMetadata(object);
  trackCreation(call, object, options);
  return answerObject(call.kind, storeNew(call, object, options), 201);
}

/** Tracks a creation that is not an apply. */
export function trackCreation(call: Call, object: JsonObject, { manager }: WriteOptions): void {
  const { kind, subresource, state } = call;
  trackUpdate(kind.blank, object, {
    schema: kind.schema,
    blank: kind.blank,
    apiVersion: formatApiVersion(kind.group, kind.version),
    subresource,
    resetFields: kind.resetFields(subresource),
    manager,
    nowMs: state.now(),
  });
}

/** Stores an object that is decoded and tracked. @throws StatusError if it may not be created */
export function storeNew(
  call: Call,
  object: JsonObject,
  options: Pick<WriteOptions, "isDryRun">,
): StoredObject {
  const { kind, state, table } = call;
  if (state.kinds.isTerminating(kind)) {
    const why = "create not allowed while custom resource definition is terminating";
    throw forbiddenByServer(kind, nameOf(object), why);
  }
  requireLiveNamespace(call, nameOf(object));
  const metadata = metadataOf(object);
  metadata["uid"] = randomUUID();
  metadata["creationTimestamp"] = formatTime(state.now());
  const generateName = textOf(metadata, "generateName");
  const isGenerated = nameOf(object) === "" && generateName !== "";
  if (isGenerated) metadata["name"] = pickName(call, generateName);
  kind.prepareCreate(object);
  const errors = [
    ...validateMetadata(object, kind.namespaced, kind.nameErrors),
    ...kind.validateCreate(object),
  ];
  if (errors.length > 0) throw invalidObject(kind, nameOf(object), errors);
  if (kind.isCustom) call.warnings.push(...unqualifiedFinalizerWarnings(object));
  if (textOf(metadata, "resourceVersion") !== "") {
    throw unconverted("resourceVersion should not be set on objects to be created");
  }
  const key = keyOf(call, nameOf(object));
  const holder = table.get(key);
  if (holder !== undefined) {
    if (isGenerated) throw generateNameConflict(kind, nameOf(object));
    if (isTerminating(holder.object)) throw beingDeleted(kind, nameOf(object));
    throw alreadyExists(kind, nameOf(object));
  }
  const stored = kind.toStorage(object);
  return options.isDryRun ? new Stored(key, 0, stored) : state.store.put(table, key, stored);
}

function pickName(call: Call, base: string): string {
  let name = "";
  for (let tries = 0; tries < NAME_TRIES; tries++) {
    name = `${base.slice(0, NAME_BASE_LENGTH)}${randomSuffix()}`;
    if (call.table.get(keyOf(call, name)) === undefined) break;
  }
  return name;
}

const randomSuffix = () =>
  Array.from({ length: 5 }, () => NAME_CHARACTERS[randomInt(NAME_CHARACTERS.length)]).join("");
