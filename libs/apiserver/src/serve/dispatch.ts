import { resourceId } from "@konverge/core";
import {
  badRequest,
  methodNotAllowed,
  methodNotSupported,
  notAcceptable,
  notEmbedded,
  notFound,
  unknownResource,
  type StatusError,
} from "../errors/status-error.ts";
import { tableOf, type Answer, type Call, type ServerState } from "../verbs/call.ts";
import type { PartialForm } from "../tables/partial-metadata.ts";
import { createObject } from "../verbs/create.ts";
import { deleteCollection, deleteObject } from "../verbs/delete.ts";
import { evictPod } from "../verbs/evict.ts";
import { getObject, listObjects } from "../verbs/list.ts";
import { patchObject } from "../verbs/patch.ts";
import { getScale, patchScale, updateScale } from "../verbs/scale.ts";
import { updateObject } from "../verbs/update.ts";
import { isOnlyInKubernetes } from "./only-in-kubernetes.ts";
import { isSubresource, type ResourcePath } from "./request-path.ts";

/** A resource request that is served here: its kind, or the rejection. */
export type Resolved =
  | { readonly kind: "call"; readonly call: Omit<Call, "body"> }
  | { readonly kind: "refused"; readonly error: StatusError }
  /** The path is not served: the router's plain text. */
  | { readonly kind: "unknown" };

export interface RequestParts {
  readonly method: string;
  readonly verb: string;
  readonly query: URLSearchParams;
  readonly userAgent: string;
  readonly contentType: string;
  readonly accept: string;
}

/** Resolves the target of a path and a method. */
export function resolve(state: ServerState, path: ResourcePath, parts: RequestParts): Resolved {
  const { kinds } = state;
  const kind = kinds.find(path.group, path.version, path.resource);
  const refused = (error: StatusError): Resolved => ({ kind: "refused", error });
  const isBuiltin = kinds.isBuiltinGroupVersion(path.group, path.version);
  if (kind === undefined) {
    if (isOnlyInKubernetes(path)) return refused(notEmbedded(resourceId(path)));
    return isBuiltin ? refused(unknownResource()) : { kind: "unknown" };
  }
  const { subresource } = path;
  if (isOnlyInKubernetes(path)) return refused(notEmbedded(`${path.resource}/${subresource}`));
  if (!isSubresource(subresource) || (subresource !== "" && !kind.subresources.has(subresource))) {
    return refused(kind.isCustom ? notFound(kind, path.name) : unknownResource());
  }
  const hasNamespace = path.namespace !== "";
  if (kind.namespaced !== hasNamespace && (hasNamespace || path.name !== "")) {
    return kind.isCustom ? { kind: "unknown" } : refused(unknownResource());
  }
  const method = refuseMethod(path, parts, kind);
  if (method !== undefined) return refused(method);
  const form = chooseForm(parts.accept);
  const isYamlStream = parts.verb === "watch" && prefersYaml(parts.accept);
  if (form === undefined || isYamlStream || (form === "Table" && !isTabular(parts.verb)))
    return refused(notAcceptable(acceptable(kind.isCustom), !kind.isCustom));
  return {
    kind: "call",
    call: {
      state,
      kind,
      table: tableOf(state, kind),
      namespace: path.namespace,
      name: path.name,
      subresource,
      query: parts.query,
      userAgent: parts.userAgent,
      contentType: parts.contentType,
      warnings: [],
    },
  };
}

/** The verbs whose response may be a Table. */
const isTabular = (verb: string): boolean => verb === "get" || verb === "list" || verb === "watch";

/** Runs a request that is not a watch. */
export function runCall(verb: string, call: Call): Answer | Promise<Answer> {
  const isScale = call.subresource === "scale";
  switch (verb) {
    case "get":
      return isScale ? getScale(call) : getObject(call);
    case "list":
      return listObjects(call);
    case "create":
      return call.subresource === "eviction" ? evictPod(call) : createObject(call);
    case "update":
      return isScale ? updateScale(call) : updateObject(call);
    case "patch":
      return isScale ? patchScale(call) : patchObject(call);
    case "delete":
      return deleteObject(call);
    case "deletecollection":
      return deleteCollection(call);
    default:
      throw methodNotAllowed();
  }
}

const SUBRESOURCE_METHODS: Readonly<Record<string, readonly string[]>> = {
  eviction: ["POST"],
  finalize: ["PUT"],
};

function refuseMethod(
  path: ResourcePath,
  { method, verb }: RequestParts,
  kind: Call["kind"],
): StatusError | undefined {
  const isCollection = path.name === "";
  const isWholeCluster = kind.namespaced && path.namespace === "";
  const allowed: readonly string[] = isCollection
    ? isWholeCluster
      ? ["GET"]
      : ["DELETE", "GET", "POST"]
    : path.subresource === ""
      ? ["DELETE", "GET", "PATCH", "PUT", ...(kind.isCustom ? ["POST"] : [])]
      : (SUBRESOURCE_METHODS[path.subresource] ?? ["GET", "PATCH", "PUT"]);
  if (kind.resource === "namespaces" && kind.group === "" && verb === "deletecollection") {
    return methodNotAllowed();
  }
  if (allowed.includes(method)) return undefined;
  if (!kind.isCustom) return methodNotAllowed();
  if (isCollection && (method === "PUT" || method === "PATCH"))
    return badRequest("name must be provided");
  return methodNotSupported(kind, verb);
}

/** The forms of a response that a client can ask for, by the parameter `as`. */
const FORMS: Readonly<Record<string, ResponseForm>> = {
  table: "Table",
  partialobjectmetadata: "PartialObjectMetadata",
  partialobjectmetadatalist: "PartialObjectMetadataList",
};

const YAML = "application/yaml";
const SERVED_TYPES = new Set(["*/*", "application/*", "application/json", YAML]);

/** Returns whether YAML is the first type that a client accepts and that is served. */
export function prefersYaml(accept: string): boolean {
  const types = accept.split(",").map((range) => (range.split(";")[0] ?? "").trim().toLowerCase());
  return types.find((type) => SERVED_TYPES.has(type)) === YAML;
}

type ResponseForm = "object" | "Table" | PartialForm;

/** The first form that a client accepts and that is served: JSON of the object, a Table, or metadata. */
export function chooseForm(accept: string): ResponseForm | undefined {
  if (accept === "") return "object";
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    if (!SERVED_TYPES.has(type)) continue;
    const wanted = parameters.find((one) => one.startsWith("as="))?.slice("as=".length);
    if (wanted === undefined) return "object";
    const form = FORMS[wanted];
    if (form !== undefined && parameters.includes("v=v1")) return form;
  }
  return undefined;
}

const acceptable = (isCustom: boolean): string[] => [
  "application/json",
  ...(isCustom ? [] : ["application/yaml", "application/vnd.kubernetes.protobuf"]),
];
