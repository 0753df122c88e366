import { createHash } from "node:crypto";
import { isJsonObject, parseJson, type JsonValue } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import { queryOf } from "./planned-call.ts";

/** The differences that a digest of a write ignores. */
export interface DigestOptions {
  /** Names and uids that the server has drawn, by their placeholders in the plan. */
  readonly drawn: ReadonlyMap<string, string>;
  /** Start of the attempt, in epoch ms. Times since then count as the current time. */
  readonly sinceMs: number;
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
  const [path = ""] = call.path.split("?", 1);
  const query = queryOf(call.path);
  query.delete("dryRun");
  query.sort();
  const segments = path.split("/").map((segment) => {
    const name = decodeURIComponent(segment);
    return options.drawn.get(name) ?? name;
  });
  const { method, contentType = "application/json" } = call;
  const identity = [method, ...segments, query.toString(), contentType, bodyOf(call, options)];
  return createHash("sha256").update(JSON.stringify(identity)).digest("base64url");
}

function bodyOf({ body, method }: PlannedCall, options: DigestOptions): JsonValue {
  if (body === undefined) return null;
  const value = parsed(body);
  if (value === undefined) return body;
  return steady(method === "DELETE" ? withoutDryRun(value) : withoutVersions(value), options);
}

/** Undefined for a body in another format, such as YAML. */
function parsed(body: string): JsonValue | undefined {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
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
