import { createHash, createHmac } from "node:crypto";
import { isJsonObject, metadataOf, type JsonValue } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import { redactValues } from "../names/sensitive-kinds.ts";
import { bodyOf as objectOf, isNamed, jsonOf, placeOf, queryOf } from "./planned-call.ts";

/** The differences that a digest of a write ignores. */
export interface DigestOptions {
  /** Names and uids that the server has drawn, by their placeholders in the plan. */
  readonly drawn: ReadonlyMap<string, string>;
  /** Start of the attempt, in epoch ms. Times since then count as the current time. */
  readonly sinceMs: number;
  /** Other values that the server has drawn, and draws again for each dry run. */
  readonly values?: ReadonlySet<JsonValue>;
}

/** How a digest hides the values that it covers. */
export interface DigestSecrecy {
  /** Keys the digest, so that values cannot be guessed. Default: values of sensitive kinds are not covered. */
  readonly salt?: string | undefined;
  readonly isSensitive: boolean;
}

/** Time before the start of an attempt that still counts as current, in ms: many formats have no fractions of a second. */
const MARGIN_MS = 2_000;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
/** Metadata that only the server sets. In a body, it is a precondition or has no effect. */
const VOLATILE = ["resourceVersion", "managedFields", "creationTimestamp", "generation"];

/**
 * Identifies a write: equal in a plan and in the attempt that makes the planned change. Preconditions on versions are left out,
 * because a plan has other versions.
 */
export function writeDigest(call: PlannedCall, options: DigestOptions): string {
  return createHash("sha256")
    .update(textOf(call, options, bodyOf(call, options)))
    .digest("base64url");
}

/** Like `writeDigest`, for the hash of a plan, which users see. */
export function shownDigest(
  call: PlannedCall,
  options: DigestOptions,
  { salt, isSensitive }: DigestSecrecy,
): string {
  const body = bodyOf(call, options);
  if (salt !== undefined) {
    return createHmac("sha256", salt)
      .update(textOf(call, options, body))
      .digest("base64url");
  }
  const shown = isSensitive ? (isJsonObject(body) ? redactValues(body) : null) : body;
  return createHash("sha256")
    .update(textOf(call, options, shown))
    .digest("base64url");
}

/**
 * Identifies the object of a write, including writes of a subresource: the writes of an object must be made in order.
 * Creations with names that the server draws have different targets, since each makes another object.
 */
export function writeTarget(call: PlannedCall, options: DigestOptions): string {
  const place = placeOf(call);
  if (place === undefined) return segmentsOf(call.path, options).join("/");
  const { group, resource, namespace = "" } = place;
  const { name } = isNamed(place) ? place : metadataOf(objectOf(call) ?? {});
  const collection = `${resource}.${group}/${placeholderOf(namespace, options)}`;
  if (typeof name === "string") return `${collection}/${placeholderOf(name, options)}`;
  return `${collection}?${writeDigest(call, options)}`;
}

function textOf(call: PlannedCall, options: DigestOptions, body: JsonValue): string {
  const query = queryOf(call.path);
  query.delete("dryRun");
  query.sort();
  const { method, contentType = "application/json" } = call;
  const segments = segmentsOf(call.path, options);
  return JSON.stringify([method, ...segments, query.toString(), contentType, body]);
}

function segmentsOf(called: string, options: DigestOptions): string[] {
  const [path = ""] = called.split("?", 1);
  return path.split("/").map((segment) => placeholderOf(decodeURIComponent(segment), options));
}

function placeholderOf(name: string, { drawn }: DigestOptions): string {
  return drawn.get(name) ?? name;
}

function bodyOf(call: PlannedCall, options: DigestOptions): JsonValue {
  const { body, method } = call;
  if (body === undefined) return null;
  const value = jsonOf(call);
  if (value === undefined) return body;
  return steady(method === "DELETE" ? withoutDryRun(value) : withoutVersions(value), options);
}

function withoutDryRun(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value;
  const { dryRun: _dry, preconditions, ...options } = value;
  if (!isJsonObject(preconditions)) return options;
  const { resourceVersion: _version, ...rest } = preconditions;
  return { ...options, preconditions: rest };
}

function withoutVersions(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutVersionOfPatch);
  if (!isJsonObject(value) || !isJsonObject(value["metadata"])) return value;
  const metadata = Object.entries(value["metadata"]).filter(([name]) => !VOLATILE.includes(name));
  return { ...value, metadata: Object.fromEntries(metadata) };
}

/** A JSON patch. */
function withoutVersionOfPatch(operation: JsonValue): JsonValue {
  return isJsonObject(operation) && operation["path"] === "/metadata/resourceVersion"
    ? { op: operation["op"] ?? null, path: operation["path"] }
    : operation;
}

/** Replaces what differs from attempt to attempt, and sorts the members. */
function steady(value: JsonValue, options: DigestOptions): JsonValue {
  if (options.values?.has(value) === true) return "drawn by the server";
  if (typeof value === "string") {
    const placeholder = options.drawn.get(value);
    if (placeholder !== undefined) return placeholder;
    return isCurrentTime(value, options) ? "the current time" : value;
  }
  if (Array.isArray(value)) return value.map((each) => steady(each, options));
  if (!isJsonObject(value)) return value;
  const members: [string, JsonValue][] = Object.entries(value).map(([name, member]) => [
    name,
    steady(member, options),
  ]);
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** True for a time since the start of the attempt. */
export function isCurrentTime(text: string, { sinceMs }: Pick<DigestOptions, "sinceMs">): boolean {
  if (!TIME.test(text)) return false;
  const atMs = Date.parse(text);
  return atMs >= sinceMs - MARGIN_MS && atMs <= Date.now() + MARGIN_MS;
}
