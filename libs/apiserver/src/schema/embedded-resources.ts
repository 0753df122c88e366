import { dns1035LabelErrors, isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { invalid, required, type FieldError } from "../errors/field-error.ts";
import { validateMetadata } from "../objects/metadata-validation.ts";
import { builtinSchema } from "./builtin-schemas.ts";
import { DecodeError, decodeBuiltin } from "./decode-builtin.ts";
import { memberSchema, type Schema } from "./schema.ts";

const MUST_BE_TEXT = "must be a string";

/**
 * Reduces the metadata of objects in fields with `x-kubernetes-embedded-resource` to the members of ObjectMeta, in place, and
 * returns the paths of the removed ones. @throws DecodeError if metadata, apiVersion or kind have another type
 */
export function decodeEmbedded(schema: Schema, object: JsonObject): string[] {
  const unknown: string[] = [];
  visit(schema, object, "", (embedded, path) => {
    for (const member of ["apiVersion", "kind"]) {
      const value = embedded[member];
      if (value === undefined || typeof value === "string") continue;
      throw new DecodeError(textOf(invalid(`${path}.${member}`, value, MUST_BE_TEXT)));
    }
    const { metadata } = embedded;
    if (metadata === undefined) return;
    unknown.push(...decodeMetadata(embedded, metadata, `${path}.metadata`));
  });
  return unknown.toSorted();
}

function decodeMetadata(embedded: JsonObject, metadata: JsonValue, path: string): string[] {
  // Go reads null as an empty struct.
  const copy = structuredClone(metadata) ?? {};
  if (!isJsonObject(copy)) {
    const found = Array.isArray(copy) ? "array" : typeof copy === "boolean" ? "bool" : typeof copy;
    const why = `json: cannot unmarshal ${found} into Go value of type v1.ObjectMeta`;
    throw new DecodeError(textOf(invalid(path, copy, why)));
  }
  try {
    const unknown = decodeBuiltin(builtinSchema("meta.v1.ObjectMeta"), copy);
    embedded["metadata"] = copy;
    return unknown.map((member) => `${path}.${member}`);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new DecodeError(textOf(invalid(path, metadata, error.message)));
  }
}

/** The checks of kube-apiserver for objects in fields with `x-kubernetes-embedded-resource`. Their metadata may be missing. */
export function validateEmbedded(schema: Schema, object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  visit(schema, object, "", (embedded, path) => {
    const { apiVersion, kind, metadata } = embedded;
    errors.push(...validateApiVersion(apiVersion, `${path}.apiVersion`));
    errors.push(...validateKind(kind, `${path}.kind`));
    if (isJsonObject(metadata)) errors.push(...validateInner(metadata, path));
  });
  return errors;
}

function validateApiVersion(value: JsonValue | undefined, path: string): FieldError[] {
  if (value === undefined) return [required(path)];
  if (typeof value !== "string") return [invalid(path, value, MUST_BE_TEXT)];
  if (value === "") return [invalid(path, value, "must not be empty")];
  if (value.split("/").length <= 2) return [];
  return [invalid(path, value, `unexpected GroupVersion string: ${value}`)];
}

function validateKind(value: JsonValue | undefined, path: string): FieldError[] {
  if (value === undefined) return [required(path)];
  if (typeof value !== "string") return [invalid(path, value, MUST_BE_TEXT)];
  if (value === "") return [invalid(path, value, "must not be empty")];
  // The real server takes this check from an older package than that of names.
  const errors = dns1035LabelErrors(value.toLowerCase()).map((one) =>
    one.replace("bytes", "characters"),
  );
  if (errors.length === 0) return [];
  const detail = `may have mixed case, but should otherwise match: ${errors.join(",")}`;
  return [invalid(path, value, detail)];
}

function validateInner(metadata: JsonObject, path: string): FieldError[] {
  const { name = "", namespace = "" } = metadata;
  const named = { metadata: { ...metadata, name: name === "" ? "fakename" : name } };
  const errors = validateMetadata(named, namespace !== "", pathSegmentErrors);
  return errors.map(({ field, body, ...error }) => ({
    ...error,
    field: `${path}.${field}`,
    // The declarative check of kube-apiserver has a text of its own.
    body:
      field === "metadata.labels" ? body.replace("a qualified name", "a valid label key") : body,
  }));
}

function pathSegmentErrors(name: string, isPrefix: boolean): string[] {
  if (!isPrefix && (name === "." || name === "..")) return [`may not be '${name}'`];
  return ["/", "%"].filter((one) => name.includes(one)).map((one) => `may not contain '${one}'`);
}

function visit(
  schema: Schema,
  value: JsonValue,
  path: string,
  see: (embedded: JsonObject, path: string) => void,
): void {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (const [index, item] of value.entries()) visit(items, item, `${path}[${index}]`, see);
    return;
  }
  if (!isJsonObject(value)) return;
  if (schema["x-kubernetes-embedded-resource"] === true) see(value, path);
  for (const [key, entry] of Object.entries(value)) {
    const member = memberSchema(schema, key);
    if (member === undefined) continue;
    const isProperty = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
    const inner = isProperty ? (path === "" ? key : `${path}.${key}`) : `${path}[${key}]`;
    visit(member, entry, inner, see);
  }
}

const textOf = ({ field, body }: FieldError): string => `${field}: ${body}`;
