import {
  formatApiVersion,
  isJsonObject,
  parseApiVersion,
  parseJson,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { parse as parseYaml } from "yaml";
import { invalid } from "../errors/field-error.ts";
import {
  badRequest,
  invalidObject,
  unsupportedMediaType,
  type StatusError,
} from "../errors/status-error.ts";
import type { ResourceKind } from "../kinds/resource-kind.ts";
import { metadataOf, nameOf, textOf } from "../objects/metadata.ts";
import { DecodeError } from "../schema/decode-builtin.ts";
import { scanJson } from "../schema/json-scanner.ts";
import type { Call } from "./call.ts";
import type { WriteOptions } from "./write-options.ts";

/** The requirements on a body. */
export interface BodyType {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Prunes and sets defaults; returns paths of unknown fields. */
  readonly decode: (object: JsonObject) => string[];
  readonly isCustom: boolean;
}

/**
 * Decodes the object of a POST or PUT: parsed, pruned, with defaults, of the path's kind. Unknown and repeated fields
 * become warnings or an error, depending on `fieldValidation`.
 * @throws StatusError 400 or 415
 */
export function decodeBody(
  { contentType, body, warnings }: Pick<Call, "contentType" | "body" | "warnings">,
  type: BodyType,
  { fieldValidation }: Pick<WriteOptions, "fieldValidation">,
): JsonObject {
  const isYaml = contentType === "application/yaml";
  if (!isYaml && contentType !== "application/json" && contentType !== "") {
    throw unsupportedMediaType([
      "application/json",
      "application/yaml",
      "application/vnd.kubernetes.protobuf",
    ]);
  }
  const object = isYaml ? parseYamlObject(body, type) : parseObject(body, type);
  const actual = describe(object, type);
  checkType(actual, type, nameOf(object));
  object["apiVersion"] = formatApiVersion(type.group, type.version);
  object["kind"] = type.kind;
  metadataOf(object);
  let unknown: string[];
  try {
    unknown = type.decode(object);
  } catch (error) {
    if (error instanceof DecodeError) throw cannotHandle(actual, type, error.message);
    throw error;
  }
  const duplicates = isYaml || fieldValidation === "Ignore" ? [] : scanJson(body).duplicates;
  const problems = [
    ...unknown.map((path) => `unknown field "${path}"`),
    ...duplicates.map((path) => `duplicate field "${path}"`),
  ];
  if (problems.length === 0 || fieldValidation === "Ignore") return object;
  if (fieldValidation === "Strict") {
    throw cannotHandle(actual, type, `strict decoding error: ${problems.join(", ")}`);
  }
  warnings.push(...problems);
  return object;
}

/** Decodes the body of an apply: YAML, which includes JSON. */
export function parseApplyBody(body: string): JsonObject {
  let value: JsonValue;
  try {
    value = body.trimStart().startsWith("{") ? parseJson(body) : parseYamlText(body);
  } catch (error) {
    throw badRequest(`error decoding YAML: ${(error as Error).message}`);
  }
  if (isJsonObject(value)) return value;
  throw badRequest(
    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}",
  );
}

function parseObject(body: string, type: BodyType): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(body);
  } catch {
    throw unrecognized(type, scanJson(body).error ?? "unexpected end of JSON input", body);
  }
  if (isJsonObject(value)) return value;
  const found = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  const target = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;
  throw unrecognized(type, `json: cannot unmarshal ${found} into Go value of type ${target}`, body);
}

/** Like the real server, ignores unknown tags; by default, the library warns about them on this process's stderr. */
export const parseYamlText = (body: string) => parseYaml(body, { logLevel: "error" }) as JsonValue;

function parseYamlObject(body: string, type: BodyType): JsonObject {
  try {
    const value = parseYamlText(body);
    if (isJsonObject(value)) return value;
  } catch (error) {
    throw unrecognized(type, `yaml: ${(error as Error).message}`, body);
  }
  throw unrecognized(type, "yaml: not an object", body);
}

function unrecognized({ kind }: BodyType, why: string, body: string): StatusError {
  const shown = summarize(body);
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why} (${shown})`,
  );
}

/** Formats a body as Go does in an error: text if it looks like JSON, otherwise hexadecimal. */
function summarize(body: string): string {
  if (body === "") return "<empty>";
  const shown = body.startsWith("{") ? body : Buffer.from(body).toString("hex");
  return body.length > 30 ? `${shown.slice(0, body.startsWith("{") ? 30 : 60)} ...` : shown;
}

interface Described {
  readonly kind: string;
  readonly apiVersion: string;
}

/** The type that the body declares; missing parts are taken from the path. */
function describe(object: JsonObject, type: BodyType): Described {
  return {
    kind: textOf(object, "kind") || type.kind,
    apiVersion: textOf(object, "apiVersion") || formatApiVersion(type.group, type.version),
  };
}

function checkType(actual: Described, type: BodyType, name: string): void {
  const expected = formatApiVersion(type.group, type.version);
  if (actual.apiVersion === expected && actual.kind === type.kind) return;
  if (type.isCustom) {
    // A custom resource's body is not decoded into a type, so another kind is only invalid.
    if (actual.apiVersion === expected) {
      const wrong = invalid("kind", actual.kind, `must be ${type.kind}`);
      throw invalidObject({ group: type.group, kind: actual.kind }, name, [wrong]);
    }
    throw badRequest(
      `the API version in the data (${actual.apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  const why =
    actual.apiVersion === expected
      ? `converting (${type.version}.${actual.kind}) to (core.${type.kind}): unknown conversion`
      : `no kind ${JSON.stringify(actual.kind)} is registered for version ${JSON.stringify(actual.apiVersion)} in scheme "pkg/runtime/scheme.go:111"`;
  throw cannotHandle(actual, type, why);
}

function cannotHandle(
  { kind, apiVersion }: Described,
  type: Pick<ResourceKind, "kind">,
  why: string,
): StatusError {
  const { version } = parseApiVersion(apiVersion);
  return badRequest(
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${type.kind}: ${why}`,
  );
}
