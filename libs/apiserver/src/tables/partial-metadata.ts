import { isJsonObject, parseJson, type JsonObject } from "@konverge/core";
import { StatusError } from "../errors/status-error.ts";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { metadataOf, objectsOf } from "../objects/metadata.ts";

/** The forms of a response that have only the metadata of objects. */
export type PartialForm = "PartialObjectMetadata" | "PartialObjectMetadataList";

const apiVersion = "meta.k8s.io/v1";

/** Reduces an object or a list to metadata. @throws StatusError 406 if the form is for the other of the two */
export function makePartial(
  form: PartialForm,
  answer: JsonObject,
  { listKind, isCustom }: ResourceKind,
): JsonObject {
  const isList = Array.isArray(answer["items"]) && answer["kind"] === listKind;
  // The form of a list for one object of a custom kind is an internal error of the real server.
  if (!isList && isCustom && form === "PartialObjectMetadataList") {
    throw new StatusError(500, "", "content is not a list");
  }
  if (isList !== (form === "PartialObjectMetadataList")) {
    const what = isList ? "a list" : "not a list";
    const text = `you requested ${form}, but the requested object is ${what}`;
    throw new StatusError(406, "NotAcceptable", text);
  }
  if (!isList) return partialOf(answer);
  const items = objectsOf(answer, "items").map(partialOf);
  const { continue: token, ...metadata } = metadataOf(answer);
  const paging = token === undefined || token === "" ? {} : { continue: token };
  return { kind: form, apiVersion, metadata: { ...metadata, ...paging }, items };
}

/** Reduces the object of a watch line to metadata; the Status of an error stays. */
export function makePartialLine(line: string): string {
  const { type, object } = parseJson(line) as JsonObject;
  if (!isJsonObject(object) || type === "ERROR") return line;
  return `${JSON.stringify({ type, object: partialOf(object) })}\n`;
}

function partialOf(object: JsonObject): JsonObject {
  const { annotations, ...metadata } = metadataOf(object);
  const shown = isJsonObject(annotations) ? withoutConverted(annotations) : undefined;
  const all = shown === undefined ? metadata : { ...metadata, annotations: shown };
  return { kind: "PartialObjectMetadata", apiVersion, metadata: all };
}

/** Without the annotation that only the conversion of a whole DaemonSet to its version adds. */
function withoutConverted(annotations: JsonObject): JsonObject | undefined {
  const { "deprecated.daemonset.template.generation": _converted, ...rest } = annotations;
  return Object.keys(rest).length === 0 ? undefined : rest;
}
