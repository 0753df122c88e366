import {
  defined,
  formatApiVersion,
  isJsonObject,
  KonvergeError,
  type ApiObject,
  type CallVerb,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import type { ApplyOptions, Patch, PatchOptions, ReplaceOptions } from "../contract/kube-client.ts";
import { isPart } from "../names/kept-part.ts";
import { toWireValue } from "../interop/wire-value.ts";
import { collectionPath, objectPath, type NamespacedName } from "../names/resource-path.ts";

/** A write, validated before it costs a token. */
export interface WriteRequest {
  readonly verb: CallVerb;
  readonly method: "POST" | "PUT" | "PATCH";
  readonly path: string;
  readonly contentType: string;
  readonly body: JsonValue;
  /** Has no name for a create with generateName. */
  readonly target: Partial<NamespacedName>;
  readonly subresource?: string | undefined;
  readonly force?: boolean | undefined;
  /** The version that the write requires. */
  readonly expectedVersion?: string | undefined;
  /** True if the write is rejected once the object has changed. Default: true with `expectedVersion`. */
  readonly guarded?: boolean;
}

const PATCH_TYPES: Readonly<Record<Patch["type"], string>> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};
const JSON_TYPE = "application/json";

export function prepareCreate(type: ResourceType, object: object): WriteRequest {
  const { body, metadata } = complete(type, object);
  if (metadata["resourceVersion"] !== undefined) {
    throw refused(type, "metadata.resourceVersion", "must not be set on a new object; remove it");
  }
  const target = targetOf(metadata);
  if (target.name === undefined && typeof metadata["generateName"] !== "string") {
    throw refused(type, "metadata.name", "is missing; set it, or metadata.generateName");
  }
  if (type.scope === "Namespaced" && target.namespace === undefined) {
    throw refused(type, "metadata.namespace", "is missing; set it");
  }
  return {
    verb: "create",
    method: "POST",
    path: collectionPath(type, target.namespace),
    contentType: JSON_TYPE,
    body,
    target,
  };
}

export function prepareReplace(
  type: ResourceType,
  object: object,
  { subresource, unguarded }: ReplaceOptions,
): WriteRequest {
  if (isPart(object)) {
    throw refused(
      type,
      "object",
      "is only a part, and a PUT would delete the rest; read the whole object, or change it with mutate",
    );
  }
  const { body, metadata } = complete(type, object);
  const expectedVersion = metadata["resourceVersion"];
  if (typeof expectedVersion !== "string" && unguarded !== true) {
    throw refused(
      type,
      "metadata.resourceVersion",
      "is missing, so the write could overwrite unread changes; replace the object that was read, or set unguarded",
    );
  }
  const target = namedTarget(type, metadata);
  return {
    verb: "update",
    method: "PUT",
    path: objectPath(type, target, subresource),
    contentType: JSON_TYPE,
    body,
    target,
    subresource,
    expectedVersion: typeof expectedVersion === "string" ? expectedVersion : undefined,
  };
}

export function preparePatch(
  type: ResourceType,
  target: NamespacedName,
  { patch, options }: { readonly patch: Patch; readonly options: PatchOptions },
): WriteRequest {
  const { subresource, force, unguarded, read } = options;
  const contentType: string | undefined = PATCH_TYPES[patch.type];
  if (contentType === undefined) {
    throw refused(
      type,
      "type",
      `is "${patch.type}"; use one of ${Object.keys(PATCH_TYPES).join(", ")}`,
    );
  }
  if (force !== undefined && patch.type !== "apply") {
    throw refused(type, "force", `requires an apply patch (got "${patch.type}"); remove it`);
  }
  const body = read === undefined ? patch.body : guardedBody(type, patch, read);
  if (unguarded !== true && !isGuarded({ type: patch.type, body })) {
    throw refused(
      type,
      "body",
      patch.type === "json"
        ? "has no test; add a test, or replace /metadata/resourceVersion with the version that was read, or set unguarded"
        : "has no metadata.resourceVersion; add the version that was read, or set unguarded",
    );
  }
  return {
    verb: patch.type === "apply" ? "apply" : "patch",
    method: "PATCH",
    path: objectPath(type, target, subresource),
    contentType,
    body,
    target,
    subresource,
    force,
    expectedVersion: versionIn(body),
  };
}

/** Adds the precondition of the object that was read, unless the patch has one of its own. */
function guardedBody(type: ResourceType, patch: Patch, read: ApiObject): JsonValue {
  const { body } = patch;
  const { resourceVersion, uid } = read.metadata;
  if (patch.type === "json") {
    if (!Array.isArray(body)) throw refused(type, "body", "must be a list of operations");
    if (resourceVersion === undefined || versionIn(body) !== undefined) return body;
    // A failed test has no specific response; replacing the version with a stale one is a conflict.
    return [{ op: "replace", path: VERSION, value: resourceVersion }, ...body];
  }
  if (!isJsonObject(body)) throw refused(type, "body", "must be an object");
  const metadata = isJsonObject(body["metadata"]) ? body["metadata"] : {};
  if (patch.type === "apply") {
    const { name, namespace } = read.metadata;
    const named = { name, ...defined({ namespace, uid }), ...metadata };
    return { ...complete(type, { ...body, metadata: named }).body };
  }
  return { ...body, metadata: { ...defined({ resourceVersion, uid }), ...metadata } };
}

const VERSION = "/metadata/resourceVersion";

/** The version that a patch requires. */
function versionIn(body: JsonValue): string | undefined {
  const operation = Array.isArray(body)
    ? body.filter(isJsonObject).find(({ op, path }) => op === "replace" && path === VERSION)
    : undefined;
  const metadata = isJsonObject(body) ? body["metadata"] : undefined;
  const version =
    operation?.["value"] ?? (isJsonObject(metadata) ? metadata["resourceVersion"] : undefined);
  return typeof version === "string" ? version : undefined;
}

export function prepareApply(
  type: ResourceType,
  object: object,
  options: ApplyOptions,
): WriteRequest {
  const { body, metadata } = complete(type, object);
  if (metadata["managedFields"] !== undefined) {
    throw refused(
      type,
      "metadata.managedFields",
      "must not be applied; apply only the fields to own, not an object that was read",
    );
  }
  return preparePatch(type, namedTarget(type, metadata), {
    patch: { type: "apply", body },
    options,
  });
}

/**
 * JSON as the server encodes it: a `test` of a JSON Patch compares text byte by byte with the output of Go's encoder,
 * which escapes these five characters.
 */
export function bodyText({ contentType, body }: WriteRequest): string {
  const text = JSON.stringify(body);
  return contentType === PATCH_TYPES.json
    ? text.replaceAll(
        /[<>&\u2028\u2029]/g,
        (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
      )
    : text;
}

/** An apply is guarded by field ownership; the others need a version or a test (P3). */
function isGuarded({ type, body }: Patch): boolean {
  if (type === "apply") return true;
  if (type === "json") {
    return (
      Array.isArray(body) &&
      body.some(
        (operation) =>
          isJsonObject(operation) &&
          (operation["op"] === "test" ||
            (operation["op"] === "replace" && operation["path"] === VERSION)),
      )
    );
  }
  const metadata = isJsonObject(body) ? body["metadata"] : undefined;
  return isJsonObject(metadata) && typeof metadata["resourceVersion"] === "string";
}

function complete(
  type: ResourceType,
  object: object,
): { readonly body: JsonObject; readonly metadata: JsonObject } {
  const body = {
    apiVersion: formatApiVersion(type.group, type.version),
    kind: type.kind,
    ...toWireValue(object),
  } as JsonObject;
  const metadata = body["metadata"];
  if (!isJsonObject(metadata)) throw refused(type, "metadata", "is missing; set metadata.name");
  return { body, metadata };
}

function targetOf({ name, namespace }: JsonObject): Partial<NamespacedName> {
  return {
    ...(typeof namespace === "string" ? { namespace } : {}),
    ...(typeof name === "string" && name !== "" ? { name } : {}),
  };
}

function namedTarget(type: ResourceType, metadata: JsonObject): NamespacedName {
  const { name, namespace } = targetOf(metadata);
  if (name === undefined) throw refused(type, "metadata.name", "is missing; set it");
  return namespace === undefined ? { name } : { namespace, name };
}

function refused(type: ResourceType, field: string, detail: string): KonvergeError {
  return new KonvergeError("invalid_request", `${type.kind}: ${field} ${detail}`, {
    issues: [{ pointer: `/${field.replaceAll(".", "/")}`, detail }],
  });
}
