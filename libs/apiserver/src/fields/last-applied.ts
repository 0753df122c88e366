import { isJsonObject, parseJson, type JsonObject, type JsonValue } from "@konverge/core";
import { metadataOf, objectOf, textOf } from "../objects/metadata.ts";
import { sortMembers } from "../objects/sort-members.ts";
import type { Schema } from "../schema/schema.ts";
import { compareTyped, fieldsOf } from "./compare.ts";
import { difference, EMPTY_FIELDS, union, type FieldSet } from "./field-set.ts";
import { typedError } from "./typed-validation.ts";

/** The annotation of `kubectl apply` without `--server-side`. */
const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
/** Only this manager moves an object from the annotation to server-side apply. */
const MANAGER = "kubectl";
/** Above this size of all annotations, the annotation is left out. */
const ANNOTATIONS_LIMIT_BYTES = 256 * 1024;

/**
 * Returns the fields that a server-side apply by kubectl may take without `force`: those of the last client-side apply that
 * no other manager has changed since.
 */
export function fieldsOfLastApply(
  manager: string,
  live: JsonObject,
  { schema, apiVersion }: { readonly schema: Schema; readonly apiVersion: string },
): FieldSet {
  const text = annotationOf(live);
  if (manager !== MANAGER || text === "") return EMPTY_FIELDS;
  let applied: JsonValue;
  try {
    applied = parseJson(text);
  } catch {
    return EMPTY_FIELDS;
  }
  const isUsable =
    isJsonObject(applied) &&
    textOf(applied, "apiVersion") === apiVersion &&
    typedError(schema, applied, "") === undefined;
  if (!isUsable) return EMPTY_FIELDS;
  const { added, modified, removed } = compareTyped(schema, applied, live);
  return difference(fieldsOf(schema, applied), union(union(added, modified), removed));
}

/** Keeps the annotation, if there is one, equal to what kubectl applies on the server. */
export function updateLastApplied(manager: string, next: JsonObject, config: JsonObject): void {
  if (manager !== MANAGER || annotationOf(next) === "") return;
  const { annotations: own, ...metadata } = metadataOf(config);
  const { [ANNOTATION]: _, ...kept } = isJsonObject(own) ? own : {};
  const applied = {
    ...config,
    metadata: own === undefined ? metadata : { ...metadata, annotations: kept },
  };
  const annotations = {
    ...objectOf(metadataOf(next), "annotations"),
    [ANNOTATION]: formatAsGo(applied),
  };
  const sizes = Object.entries(annotations)
    .flat()
    .map((text) => Buffer.byteLength(String(text)));
  if (sizes.reduce((sum, size) => sum + size, 0) > ANNOTATIONS_LIMIT_BYTES) {
    delete (annotations as JsonObject)[ANNOTATION];
  }
  metadataOf(next)["annotations"] = annotations;
}

const annotationOf = (object: JsonObject): string =>
  textOf(objectOf(metadataOf(object), "annotations") ?? {}, ANNOTATION);

/** JSON as Go writes it: sorted members, escaped HTML, and a newline. */
function formatAsGo(value: JsonObject): string {
  const text = JSON.stringify(sortMembers(value));
  const escaped = text.replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${escaped}\n`;
}
