import { isJsonObject, metadataOf, type JsonObject, type JsonValue } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import { withMetadata } from "./object-fields.ts";
import { bodyOf, jsonOf, pathOnly, placeOf, queryOf } from "./planned-call.ts";

const VERSION_PATH = "/metadata/resourceVersion";
/** The parameters of a deletion that the API server reads from the query only if there is no body. */
const DELETE_OPTIONS = ["propagationPolicy", "gracePeriodSeconds", "orphanDependents"];

/** Returns the version in the precondition of a write; undefined if it has none. */
export function givenVersion(call: PlannedCall): string | undefined {
  const body = jsonOf(call);
  const value = isRemoval(call)
    ? preconditionsOf(optionsOf(call))["resourceVersion"]
    : Array.isArray(body)
      ? body.find(isVersionTest)?.["value"]
      : isJsonObject(body)
        ? metadataOf(body)["resourceVersion"]
        : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Adds a precondition on the version of the object. Returns undefined if the call cannot have one. */
export function withVersion(call: PlannedCall, version: string): PlannedCall | undefined {
  if (isRemoval(call)) return withPrecondition(call, version);
  if (call.method !== "PUT" && call.method !== "PATCH") return undefined;
  const body = jsonOf(call);
  if (Array.isArray(body)) {
    // The server compares the version of the result, so a mismatch is a conflict.
    const operation = { op: "replace", path: VERSION_PATH, value: version };
    return { ...call, body: JSON.stringify([operation, ...body]) };
  }
  if (!isJsonObject(body)) return undefined;
  return { ...call, body: JSON.stringify(withMetadata(body, { resourceVersion: version })) };
}

function withPrecondition(call: PlannedCall, version: string): PlannedCall | undefined {
  if (call.body !== undefined && bodyOf(call) === undefined) return undefined;
  const options = optionsOf(call);
  const preconditions = { ...preconditionsOf(options), resourceVersion: version };
  if (call.method === "POST") {
    const body = { ...bodyOf(call), deleteOptions: { ...options, preconditions } };
    return { ...call, body: JSON.stringify(body) };
  }
  const query = queryOf(call.path);
  for (const name of DELETE_OPTIONS) query.delete(name);
  const rest = query.toString();
  return {
    ...call,
    path: rest === "" ? pathOnly(call.path) : `${pathOnly(call.path)}?${rest}`,
    contentType: "application/json",
    body: JSON.stringify({ kind: "DeleteOptions", apiVersion: "v1", ...options, preconditions }),
  };
}

/** True for the deletion of an object, also by an eviction. */
function isRemoval(call: PlannedCall): boolean {
  return call.method === "DELETE" || placeOf(call)?.subresource === "eviction";
}

function optionsOf(call: PlannedCall): JsonObject {
  const body = bodyOf(call);
  if (call.method === "POST") {
    const inner = body?.["deleteOptions"];
    return isJsonObject(inner) ? inner : {};
  }
  if (body !== undefined) return body;
  const query = queryOf(call.path);
  const given = DELETE_OPTIONS.flatMap((name): [string, JsonValue][] => {
    const text = query.get(name);
    if (text === null) return [];
    if (name === "gracePeriodSeconds") return [[name, Number(text)]];
    return [[name, name === "orphanDependents" ? text === "true" : text]];
  });
  return Object.fromEntries(given);
}

function preconditionsOf(options: JsonObject): JsonObject {
  const { preconditions } = options;
  return isJsonObject(preconditions) ? preconditions : {};
}

function isVersionTest(operation: JsonValue): operation is JsonObject {
  return isJsonObject(operation) && operation["path"] === VERSION_PATH;
}
