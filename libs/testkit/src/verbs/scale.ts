import { cloneJson, isJsonObject, type JsonObject } from "@konverge/core";
import { invalid } from "../errors/field-error.ts";
import { invalidObject, notFound, staleVersion, conflict } from "../errors/status-error.ts";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { getPath, setPath } from "../objects/dotted-path.ts";
import {
  metadataOf,
  nameOf,
  objectOf,
  setOrDelete,
  uidOf,
  versionOf,
} from "../objects/metadata.ts";
import { builtinSchema } from "../schema/builtin-schemas.ts";
import { decodeBuiltin } from "../schema/decode-builtin.ts";
import { keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { decodeBody, type BodyType } from "./decode-body.ts";
import { matchName, matchNamespace } from "./object-identity.ts";
import { checkContentType, patched } from "./patch.ts";
import { storeNext, track } from "./update.ts";
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

/** PATCH of a scale: of what GET shows. */
export function patchScale(call: Call): Answer {
  checkContentType(call);
  const options = readWriteOptions("PatchOptions", call.query, call.userAgent);
  const scale = patched(call, scaleOf(call.kind, liveOf(call).object), options);
  SCALE.decode(scale);
  return storeScale(call, scale, options);
}

function storeScale(call: Call, scale: JsonObject, options: WriteOptions): Answer {
  const { kind, name } = call;
  const stored = liveOf(call);
  const live = stored.object;
  const paths = kind.scale;
  if (paths === undefined) throw notFound(kind, name);
  const replicas = objectOf(scale, "spec")?.["replicas"] ?? 0;
  if (typeof replicas !== "number" || replicas < 0) {
    const detail = "must be greater than or equal to 0";
    throw invalidObject({ group: "autoscaling", kind: "Scale" }, nameOf(scale), [
      invalid("spec.replicas", replicas, detail),
    ]);
  }
  const uid = uidOf(scale);
  if (uid !== "" && uid !== uidOf(live)) {
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${uidOf(live)}`,
    );
  }
  const version = versionOf(scale);
  if (version !== "" && version !== versionOf(live)) throw staleVersion(kind, name);
  const next = cloneJson(live);
  setPath(next, paths.specReplicas, replicas);
  track(call, next, live, options);
  const main: Call = { ...call, subresource: "" };
  const written = storeNext(main, next, call.table.get(stored.key) ?? stored, options);
  return { code: 200, text: JSON.stringify(scaleOf(kind, viewOf(kind, written).object)) };
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

/** A custom resource keeps its selector as text, a Deployment as an object. */
function selectorText(selector: unknown): string {
  if (typeof selector === "string") return selector;
  if (!isJsonObject(selector)) return "";
  const labels = objectOf(selector, "matchLabels") ?? {};
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${String(value)}`)
    .toSorted()
    .join(",");
}
