import {
  applyJsonPatch,
  cloneJson,
  formatApiVersion,
  isJsonObject,
  JsonPatchError,
  parseJson,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { invalid } from "../errors/field-error.ts";
import {
  badRequest,
  conflict,
  invalidObject,
  notFound,
  patchRefused,
  StatusError,
  tooLargeEntity,
  unsupportedMediaType,
} from "../errors/status-error.ts";
import { applyConfiguration } from "../fields/field-manager.ts";
import { metadataOf, textOf, uidOf } from "../objects/metadata.ts";
import { applyServerMergePatch } from "../patch/merge-patch.ts";
import { readAsGo } from "../patch/read-as-go.ts";
import { applyStrategicPatch, StrategicPatchError } from "../patch/strategic-merge.ts";
import { DecodeError } from "../schema/decode-builtin.ts";
import { scanJson } from "../schema/json-scanner.ts";
import { answerObject, keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { storeNew } from "./create.ts";
import { parseApplyBody } from "./decode-body.ts";
import { dedupOwners, matchName, matchNamespace, normalizeMetadata } from "./object-identity.ts";
import { formatGo } from "./go-format.ts";
import { storeNext, track } from "./update.ts";
import { readWriteOptions, type WriteOptions } from "./write-options.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";
export const APPLY_PATCH: string = "application/apply-patch+yaml";
const MAX_OPERATIONS = 10_000;

/** PATCH of an object or its status, by any of the four content types. */
export function patchObject(call: Call): Answer {
  checkContentType(call);
  const { kind, name, table, contentType } = call;
  const isApply = contentType === APPLY_PATCH;
  const options = readWriteOptions("PatchOptions", call.query, call.userAgent, isApply);
  const stored = table.get(keyOf(call, name));
  if (isApply) {
    if (stored === undefined) return answerObject(kind, applyNew(call, options), 201);
    const live = viewOf(kind, stored).object;
    const next = applied(call, live, options);
    return answerObject(kind, storeNext(call, next, stored, options));
  }
  if (stored === undefined) throw notFound(kind, name);
  const live = viewOf(kind, stored).object;
  const next = decodePatched(call, patched(call, live, options), options);
  normalizeMetadata(next);
  track(call, next, live, options);
  identify(call, next);
  return answerObject(kind, storeNext(call, next, stored, options));
}

/** @throws StatusError 415, with the router's text for built-in kinds */
export function checkContentType({ kind, contentType }: Call): void {
  const accepted = [
    JSON_PATCH,
    MERGE_PATCH,
    ...(kind.isCustom ? [] : [STRATEGIC_PATCH]),
    APPLY_PATCH,
  ];
  if (accepted.includes(contentType)) return;
  if (kind.isCustom) throw unsupportedMediaType(accepted);
  throw new StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
}

function identify(call: Call, next: JsonObject): void {
  matchNamespace(call, next);
  matchName(call, next);
  dedupOwners(call, next);
}

function applyNew(call: Call, options: WriteOptions) {
  const { kind, name } = call;
  const next = applied(call, kind.blank, options);
  if (uidOf(next) !== "") {
    throw conflict(
      kind,
      name,
      `uid mismatch: the provided object specified uid ${uidOf(next)}, and no existing object was found`,
    );
  }
  if (call.subresource !== "") throw notFound(kind, name);
  // An apply that creates an object may have a version: there is no newer one.
  delete metadataOf(next)["resourceVersion"];
  return storeNew(call, next, options);
}

/** Returns the live object merged with the configuration in the body. */
function applied(call: Call, live: JsonObject, options: WriteOptions): JsonObject {
  const { kind, state, subresource } = call;
  const config = parseApplyBody(call.body);
  const apiVersion = textOf(config, "apiVersion");
  if (apiVersion !== formatApiVersion(kind.group, kind.version) || config["kind"] !== kind.kind) {
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${textOf(config, "kind")}`);
  }
  const next = applyConfiguration(live, config, {
    schema: kind.schema,
    blank: kind.blank,
    apiVersion: formatApiVersion(kind.group, kind.version),
    subresource,
    resetFields: kind.resetFields(subresource),
    manager: options.manager,
    nowMs: state.now(),
    force: options.force,
  });
  const copy = cloneJson(next);
  kind.decode(copy);
  normalizeMetadata(copy);
  identify(call, copy);
  return copy;
}

/** The result of a patch other than apply, not yet decoded. */
export function patched(call: Call, live: JsonObject, options: WriteOptions): JsonObject {
  const { contentType, kind } = call;
  const patch = parsePatch(call, options);
  switch (contentType) {
    case JSON_PATCH: {
      const operations = Array.isArray(patch) ? patch : [];
      if (operations.length > MAX_OPERATIONS) {
        throw tooLargeEntity(
          `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`,
        );
      }
      const tested = readAsGo(call.body, operations);
      return refusing(() => applyJsonPatch(live, operations, tested) as JsonObject);
    }
    case STRATEGIC_PATCH:
      return refusing(() => applyStrategicPatch(kind.schema, live, patch as JsonObject));
    default:
      return applyServerMergePatch(live, patch);
  }
}

function refusing(apply: () => JsonObject): JsonObject {
  try {
    return apply();
  } catch (error) {
    if (error instanceof JsonPatchError) throw patchRefused();
    if (error instanceof StrategicPatchError) throw new StatusError(500, "", error.message);
    throw error;
  }
}

function parsePatch({ body, contentType, warnings }: Call, options: WriteOptions): JsonValue {
  const isList = contentType === JSON_PATCH;
  const prefix = contentType === STRATEGIC_PATCH ? "" : "error decoding patch: ";
  let patch: JsonValue;
  try {
    patch = parseJson(body);
  } catch {
    throw badRequest(`${prefix}${scanJson(body).error ?? "unexpected end of JSON input"}`);
  }
  const isRight = isList ? Array.isArray(patch) : isJsonObject(patch);
  if (!isRight) {
    const found = Array.isArray(patch) ? "array" : patch === null ? "null" : goNameOf(patch);
    const target = isList ? "[]handlers.jsonPatchOp" : "map[string]interface {}";
    throw badRequest(`${prefix}json: cannot unmarshal ${found} into Go value of type ${target}`);
  }
  if (options.fieldValidation === "Ignore") return patch;
  const duplicates = scanJson(body).duplicates.map((path) => `duplicate field "${path}"`);
  if (options.fieldValidation === "Strict" && duplicates.length > 0) {
    throw refusedPatch(body, `strict decoding error: ${duplicates.join(", ")}`);
  }
  warnings.push(...duplicates);
  return patch;
}

/** Decodes the result of a patch. An invalid result is a 422 that shows the whole object, as in the real server. */
function decodePatched(call: Call, object: JsonObject, options: WriteOptions): JsonObject {
  const { kind, warnings } = call;
  const original = JSON.stringify(object);
  if (!isJsonObject(object)) throw refusedPatch(original, "json: cannot unmarshal into an object");
  if (!isJsonObject(object["metadata"] ?? {})) {
    throw refusedPatch(
      original,
      `json: cannot unmarshal ${typeof object["metadata"]} into Go struct field ${kind.kind}.metadata of type v1.ObjectMeta`,
    );
  }
  metadataOf(object);
  let unknown: string[];
  try {
    unknown = kind.decode(object);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw call.contentType === STRATEGIC_PATCH
      ? refusedPatch(formatGo(parseJson(call.body)), error.ofPatch)
      : refusedPatch(original, error.message);
  }
  const problems = unknown.map((path) => `unknown field "${path}"`);
  if (options.fieldValidation === "Strict" && problems.length > 0) {
    throw refusedPatch(original, `strict decoding error: ${problems.join(", ")}`);
  }
  if (options.fieldValidation === "Warn") warnings.push(...problems);
  return object;
}

const goNameOf = (value: JsonValue): string => (typeof value === "boolean" ? "bool" : typeof value);

const refusedPatch = (text: string, why: string): StatusError =>
  invalidObject({ group: "", kind: "" }, "", [invalid("patch", text, why)]);
