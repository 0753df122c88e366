import {
  labelValueErrors,
  dnsLabelErrors,
  qualifiedNameErrors,
  type JsonObject,
} from "@konverge/core";
import { forbidden, invalid, required, tooLong, type FieldError } from "../errors/field-error.ts";
import {
  finalizersOf,
  generationOf,
  isTerminating,
  metadataOf,
  objectOf,
  objectsOf,
  textOf,
} from "./metadata.ts";

const ANNOTATIONS_LIMIT_BYTES = 256 * 1024;
const IMMUTABLE = "field is immutable";
const PATH = "metadata";

/** The checks of apimachinery's `ValidateObjectMeta`, in its order. `nameErrors` are the kind's rules for names. */
export function validateMetadata(
  object: JsonObject,
  namespaced: boolean,
  nameErrors: (name: string, isPrefix: boolean) => string[],
): FieldError[] {
  const metadata = metadataOf(object);
  const errors: FieldError[] = [];
  const generateName = textOf(metadata, "generateName");
  if (generateName !== "") {
    for (const message of nameErrors(generateName, true)) {
      errors.push(invalid(`${PATH}.generateName`, generateName, message));
    }
  }
  const name = textOf(metadata, "name");
  if (name === "") errors.push(required(`${PATH}.name`, "name or generateName is required"));
  else errors.push(...nameErrors(name, false).map((text) => invalid(`${PATH}.name`, name, text)));
  errors.push(...validateNamespace(textOf(metadata, "namespace"), namespaced));
  errors.push(...validateDescription(metadata), ...validateFinalizers(finalizersOf(object)));
  return errors;
}

/** Checks that apply both to new and to changed objects. */
function validateDescription(metadata: JsonObject): FieldError[] {
  const labels = Object.entries(objectOf(metadata, "labels") ?? {}).flatMap(([key, value]) => [
    ...qualifiedNameErrors(key).map((text) => invalid(`${PATH}.labels`, key, text)),
    ...(typeof value === "string" ? labelValueErrors(value) : []).map((text) =>
      invalid(`${PATH}.labels`, value, text),
    ),
  ]);
  return [
    ...labels,
    ...validateAnnotations(objectOf(metadata, "annotations") ?? {}),
    ...validateOwners(objectsOf(metadata, "ownerReferences")),
  ];
}

/** The checks of `ValidateObjectMetaUpdate`. The server has set generation and timestamps before. */
export function validateMetadataUpdate(next: JsonObject, live: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  if (isTerminating(live)) {
    const added = finalizersOf(next).filter((one) => !finalizersOf(live).includes(one));
    if (added.length > 0) {
      const list = added.toSorted().map((one) => JSON.stringify(one));
      errors.push(
        forbidden(
          `${PATH}.finalizers`,
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list.join(", ")}}`,
        ),
      );
    }
  }
  if (textOf(metadataOf(next), "resourceVersion") === "") {
    errors.push(invalid(`${PATH}.resourceVersion`, "", "must be specified for an update"));
  }
  if (generationOf(next) < generationOf(live)) {
    errors.push(invalid(`${PATH}.generation`, generationOf(next), "must not be decremented"));
  }
  for (const member of ["name", "namespace", "uid"]) {
    const value = textOf(metadataOf(next), member);
    if (value !== textOf(metadataOf(live), member)) {
      errors.push(invalid(`${PATH}.${member}`, value, IMMUTABLE));
    }
  }
  for (const member of ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]) {
    const value = metadataOf(next)[member];
    if (value !== metadataOf(live)[member])
      errors.push(invalid(`${PATH}.${member}`, value ?? null, IMMUTABLE));
  }
  return [...errors, ...validateDescription(metadataOf(next))];
}

function validateNamespace(namespace: string, namespaced: boolean): FieldError[] {
  const path = `${PATH}.namespace`;
  if (!namespaced) return namespace === "" ? [] : [forbidden(path, "not allowed on this type")];
  if (namespace === "") return [required(path)];
  return dnsLabelErrors(namespace).map((text) => invalid(path, namespace, text));
}

function validateAnnotations(annotations: JsonObject): FieldError[] {
  const path = `${PATH}.annotations`;
  let bytes = 0;
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(annotations)) {
    // Annotation keys are not case-sensitive.
    for (const message of qualifiedNameErrors(key.toLowerCase()))
      errors.push(invalid(path, key, message));
    bytes += Buffer.byteLength(key) + (typeof value === "string" ? Buffer.byteLength(value) : 0);
  }
  if (bytes > ANNOTATIONS_LIMIT_BYTES) errors.push(tooLong(path, ANNOTATIONS_LIMIT_BYTES));
  return errors;
}

function validateOwners(owners: readonly JsonObject[]): FieldError[] {
  const path = `${PATH}.ownerReferences`;
  const errors: FieldError[] = [];
  let controller = "";
  for (const owner of owners) {
    const value = (member: string): string => textOf(owner, member);
    if (value("apiVersion") === "")
      errors.push(invalid(`${path}.apiVersion`, "", "version must not be empty"));
    for (const member of ["kind", "name", "uid"]) {
      if (value(member) === "") errors.push(invalid(`${path}.${member}`, "", "must not be empty"));
    }
    if (owner["apiVersion"] === "v1" && owner["kind"] === "Event") {
      errors.push(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (owner["controller"] !== true) continue;
    const current = `${value("kind")}/${value("name")}`;
    if (controller === "") controller = current;
    else {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`;
      errors.push(invalid(path, [...owners], detail));
    }
  }
  return errors;
}

function validateFinalizers(finalizers: readonly string[]): FieldError[] {
  const path = `${PATH}.finalizers`;
  const errors = finalizers.flatMap((one) =>
    qualifiedNameErrors(one).map((text) => invalid(path, one, text)),
  );
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    const detail = "finalizer orphan and foregroundDeletion cannot be both set";
    errors.push(invalid(path, [...finalizers], detail));
  }
  return errors;
}
