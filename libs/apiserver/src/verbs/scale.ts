import { cloneJson, formatApiVersion, isJsonObject, type JsonObject } from "@konverge/core";
import { invalid } from "../errors/field-error.ts";
import { badRequest, invalidObject, notFound } from "../errors/status-error.ts";
import { applyConfiguration } from "../fields/field-manager.ts";
import { EMPTY_FIELDS } from "../fields/field-set.ts";
import type { ResourceKind, ScalePaths } from "../kinds/resource-kind.ts";
import { getPath, setPath } from "../objects/dotted-path.ts";
import {
  metadataOf,
  nameOf,
  objectOf,
  objectsOf,
  setOrDelete,
  textOf,
  versionOf,
} from "../objects/metadata.ts";
import { builtinSchema } from "../schema/builtin-schemas.ts";
import { decodeBuiltin } from "../schema/decode-builtin.ts";
import { keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { decodeBody, parseApplyBody, type BodyType } from "./decode-body.ts";
import { matchName, matchNamespace } from "./object-identity.ts";
import { APPLY_PATCH, checkContentType, patched } from "./patch.ts";
import { checkUid, storeNext, track } from "./update.ts";
import { readWriteOptions, type WriteOptions } from "./write-options.ts";

const SCALE: BodyType = {
  group: "autoscaling",
  version: "v1",
  kind: "Scale",
  isCustom: false,
  decode: (object) => decodeBuiltin(builtinSchema("autoscaling.v1.Scale"), object),
};

/** GET of the scale subresource: the parent's numbers under the parent's version. */
export function getScale(call: Call): Answer {
  return { code: 200, text: JSON.stringify(scaleOf(call.kind, liveOf(call).object)) };
}

/** PUT of a scale. */
export function updateScale(call: Call): Answer {
  const options = readWriteOptions("UpdateOptions", call.query, call.userAgent);
  const scale = decodeBody(call, SCALE, options);
  matchNamespace(call, scale);
  matchName(call, scale);
  return storeScale(call, scale, options);
}

/** PATCH of a scale, based on the result of GET. */
export function patchScale(call: Call): Answer {
  checkContentType(call);
  const isApply = call.contentType === APPLY_PATCH;
  const options = readWriteOptions("PatchOptions", call.query, call.userAgent, isApply);
  if (isApply) return applyScale(call, options);
  const scale = patched(call, scaleOf(call.kind, liveOf(call).object), options);
  SCALE.decode(scale);
  return storeScale(call, scale, options);
}

function storeScale(call: Call, scale: JsonObject, options: WriteOptions): Answer {
  const { kind } = call;
  const { object: live } = liveOf(call);
  const replicas = replicasOf(kind, scale);
  checkUid(call, scale, live);
  const next = cloneJson(live);
  setPath(next, pathsOf(kind).specReplicas, replicas);
  // The real server tracks the managers of the scale, and reports none if no manager owns the replicas.
  if (isOwned(live, pathsOf(kind).specReplicas)) track(call, next, live, options);
  const version = versionOf(scale);
  if (version !== "") metadataOf(next)["resourceVersion"] = version;
  return store(call, next, options);
}

function isOwned(live: JsonObject, path: string): boolean {
  const fields = path
    .split(".")
    .map((name) => `f:${name}`)
    .join(".");
  return objectsOf(metadataOf(live), "managedFields").some(
    (entry) => getPath(objectOf(entry, "fieldsV1") ?? {}, fields) !== undefined,
  );
}

/** An apply of a scale owns the parent's replicas, like an apply of the parent. */
function applyScale(call: Call, options: WriteOptions): Answer {
  const { kind, state, name } = call;
  const { object: live } = liveOf(call);
  const scale = parseApplyBody(call.body);
  const { kind: kindName, apiVersion } = scale;
  if (apiVersion !== "autoscaling/v1" || kindName !== "Scale") {
    throw badRequest(`invalid object type: ${String(apiVersion)}, Kind=${String(kindName)}`);
  }
  const config: JsonObject = {
    apiVersion: formatApiVersion(kind.group, kind.version),
    kind: kind.kind,
    metadata: { name },
  };
  setPath(config, pathsOf(kind).specReplicas, replicasOf(kind, scale));
  const next = applyConfiguration(live, config, {
    schema: kind.schema,
    blank: kind.blank,
    apiVersion: formatApiVersion(kind.group, kind.version),
    subresource: "scale",
    resetFields: EMPTY_FIELDS,
    manager: options.manager,
    nowMs: state.now(),
    force: options.force,
  });
  return store(call, next, options);
}

function store(call: Call, next: JsonObject, options: WriteOptions): Answer {
  const { kind, name, table } = call;
  const stored = table.get(keyOf(call, name));
  if (stored === undefined) throw notFound(kind, name);
  const isZero = getPath(next, pathsOf(kind).specReplicas) === 0;
  fixScaleOwners(next, viewOf(kind, stored).object, isZero);
  const written = storeNext({ ...call, subresource: "" }, next, stored, options);
  return { code: 200, text: JSON.stringify(scaleOf(kind, viewOf(kind, written).object)) };
}

/** Scale writes never set the time of an owner's entry: the real server loses it in the conversion. */
function fixScaleOwners(next: JsonObject, live: JsonObject, isZero: boolean): void {
  const identity = (entry: JsonObject) =>
    `${textOf(entry, "manager")} ${textOf(entry, "operation")}`;
  const scaleEntries = (object: JsonObject) =>
    objectsOf(metadataOf(object), "managedFields").filter(
      ({ subresource }) => subresource === "scale",
    );
  if (isZero) {
    // Zero is omitted from a scale, so it has no owner.
    const kept = objectsOf(metadataOf(next), "managedFields").filter(
      ({ subresource }) => subresource !== "scale",
    );
    metadataOf(next)["managedFields"] = kept;
    return;
  }
  const before = new Map(scaleEntries(live).map((entry) => [identity(entry), entry["time"]]));
  for (const entry of scaleEntries(next)) setOrDelete(entry, "time", before.get(identity(entry)));
}

function pathsOf(kind: ResourceKind): ScalePaths {
  if (kind.scale === undefined) throw new Error(`${kind.kind} is served without a scale`);
  return kind.scale;
}

/** Validates a Deployment's scale on its own, and that of a custom resource with its parent. */
function replicasOf(kind: ResourceKind, scale: JsonObject): number {
  const replicas = Number(objectOf(scale, "spec")?.["replicas"] ?? 0);
  if (replicas >= 0 || kind.isCustom) return replicas;
  throw invalidObject({ group: "autoscaling", kind: "Scale" }, nameOf(scale), [
    invalid("spec.replicas", replicas, "must be greater than or equal to 0"),
  ]);
}

function liveOf(call: Call) {
  const { kind, name, table } = call;
  const stored = table.get(keyOf(call, name));
  if (stored === undefined) throw notFound(kind, name);
  return viewOf(kind, stored);
}

function scaleOf({ scale }: ResourceKind, object: JsonObject): JsonObject {
  const metadata = metadataOf(object);
  const shown: JsonObject = {};
  for (const member of ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]) {
    setOrDelete(shown, member, metadata[member]);
  }
  const numberAt = (path: string | undefined) => {
    const value = path === undefined ? undefined : getPath(object, path);
    return typeof value === "number" ? value : 0;
  };
  const replicas = numberAt(scale?.specReplicas);
  const selector = selectorText(scale?.labelSelector && getPath(object, scale.labelSelector));
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: shown,
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: numberAt(scale?.statusReplicas),
      ...(selector === "" ? {} : { selector }),
    },
  };
}

/** The selector is text in a custom resource, and an object in a Deployment. */
function selectorText(selector: unknown): string {
  if (typeof selector === "string") return selector;
  if (!isJsonObject(selector)) return "";
  const labels = objectOf(selector, "matchLabels") ?? {};
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : ""}`)
    .toSorted()
    .join(",");
}
