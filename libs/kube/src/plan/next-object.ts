import {
  applyJsonPatch,
  applyMergePatch,
  defined,
  isJsonObject,
  JsonPatchError,
  metadataOf,
  SERVER_METADATA,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import { textOf, withMetadata } from "./object-fields.ts";
import { jsonOf } from "./planned-call.ts";

/** The result of a write, computed without the server. */
export type Wanted =
  | { readonly kind: "object"; readonly object: JsonObject }
  /** Only the server can compute it: an apply, or a strategic merge patch. */
  | { readonly kind: "merge"; readonly intent: JsonObject }
  | { readonly kind: "conflict" }
  | { readonly kind: "replaced"; readonly given: string }
  | { readonly kind: "inapplicable" }
  /** The body is not JSON, for example. */
  | { readonly kind: "unknown" };

/** Computes the result of a PUT or PATCH of a planned object, with the preconditions of its body. */
export function nextObject(view: JsonObject, call: PlannedCall): Wanted {
  const body = jsonOf(call);
  if (body === undefined) return { kind: "unknown" };
  const type = call.method === "PUT" ? "put" : (call.contentType ?? "").split(/[+;]/)[0];
  if (type === "application/json-patch") return patched(view, body);
  if (!isJsonObject(body)) return { kind: "unknown" };
  const failed = failedPrecondition(view, metadataOf(body));
  if (failed !== undefined) return failed;
  const given = withoutPreconditions(body);
  switch (type) {
    case "put":
      return { kind: "object", object: asOf(view, given) };
    case "application/merge-patch":
      return { kind: "object", object: asOf(view, applyMergePatch(view, given) as JsonObject) };
    case "application/apply-patch":
    case "application/strategic-merge-patch":
      return { kind: "merge", intent: given };
    default:
      return { kind: "unknown" };
  }
}

/** Returns the failed precondition of a body or of the options of a deletion. */
export function failedPrecondition(
  view: JsonObject,
  { uid, resourceVersion }: JsonObject,
): Extract<Wanted, { kind: "conflict" | "replaced" }> | undefined {
  if (typeof uid === "string" && uid !== textOf(view, "uid"))
    return { kind: "replaced", given: uid };
  const isOther =
    typeof resourceVersion === "string" &&
    resourceVersion !== "" &&
    resourceVersion !== textOf(view, "resourceVersion");
  return isOther ? { kind: "conflict" } : undefined;
}

function patched(view: JsonObject, operations: JsonValue): Wanted {
  if (!Array.isArray(operations)) return { kind: "unknown" };
  try {
    const result = applyJsonPatch(view, operations);
    if (!isJsonObject(result)) return { kind: "unknown" };
    const failed = failedPrecondition(view, metadataOf(result));
    return failed ?? { kind: "object", object: asOf(view, result) };
  } catch (error) {
    if (error instanceof JsonPatchError) return { kind: "inapplicable" };
    throw error;
  }
}

/** The object with the server's own fields of the planned one. */
function asOf(view: JsonObject, object: JsonObject): JsonObject {
  const metadata = metadataOf(view);
  const own = SERVER_METADATA.map((name) => [name, metadata[name]] as const);
  const kept = Object.fromEntries(own.filter(([, value]) => value !== undefined)) as JsonObject;
  const others = Object.entries(metadataOf(object)).filter(
    ([name]) => !SERVER_METADATA.includes(name),
  );
  const { apiVersion, kind } = view;
  return {
    ...object,
    ...defined({ apiVersion, kind }),
    metadata: { ...Object.fromEntries(others), ...kept },
  };
}

function withoutPreconditions(body: JsonObject): JsonObject {
  if (!isJsonObject(body["metadata"])) return body;
  const { resourceVersion: _version, uid: _uid, ...metadata } = body["metadata"];
  return { ...body, metadata };
}

/** The object as a create may send it: without the fields of the server. */
export function asNew(object: JsonObject): JsonObject {
  const others = Object.entries(metadataOf(object)).filter(
    ([name]) => !SERVER_METADATA.includes(name),
  );
  return { ...object, metadata: Object.fromEntries(others) };
}

/** A body with the preconditions of the object on the server. */
export function basedOn(before: JsonObject, body: JsonObject): JsonObject {
  const uid = textOf(before, "uid");
  const resourceVersion = textOf(before, "resourceVersion");
  return withMetadata(body, {
    ...defined({ uid, resourceVersion }),
  });
}
