import { isJsonObject, isRawNumber, type JsonObject, type JsonValue } from "@konverge/core";
import { blankMember } from "./blank-object.ts";
import { goTypeName } from "./builtin-schemas.ts";
import { isIntOrString, isOpenObject, memberSchema, type Schema } from "./schema.ts";

/** A value of the wrong type, with the text of Go's JSON decoder. */
export class DecodeError extends Error {
  /** The text for the result of a strategic merge patch, which the real server does not decode from JSON. */
  readonly ofPatch: string;

  constructor(message: string, ofPatch: string = message) {
    super(message);
    this.ofPatch = ofPatch;
  }
}

/**
 * Repeats the effect of decoding the JSON of a built-in kind into a Go struct and encoding it: unknown members are
 * dropped (their paths are returned), as are null and empty lists and maps; a value of the wrong type throws {@link
 * DecodeError}. Changes the object in place.
 */
export function decodeBuiltin(schema: Schema, object: JsonObject): string[] {
  const unknown: string[] = [];
  decodeObject(schema, object, { path: "", struct: goTypeName(schema) ?? "", unknown });
  return unknown;
}

interface Place {
  readonly path: string;
  /** Go type of the innermost struct. */
  readonly struct: string;
  readonly unknown: string[];
}

function decodeObject(schema: Schema, object: JsonObject, place: Place): void {
  for (const [key, value] of Object.entries(object)) {
    const member = memberSchema(schema, key);
    const path = place.path === "" ? key : `${place.path}.${key}`;
    if (member === undefined) {
      if (isOpenObject(schema)) continue;
      delete object[key];
      place.unknown.push(path);
      continue;
    }
    const isMap = schema.properties === undefined;
    if (value === null && !isMap) {
      delete object[key];
      continue;
    }
    // Go reports the struct's field, so the path omits the keys of a map.
    decodeValue(member, value, { ...place, path: isMap ? place.path : path });
    if (value === null) object[key] = zeroOf(member);
    else if (
      isEmptyCollection(member, value) &&
      !schema.required?.includes(key) &&
      key !== "managedFields"
    )
      delete object[key];
  }
  addUnset(schema, object);
}

/** Adds the members that Go writes even if they are unset: a default in the schema, or null for a required list. */
function addUnset(schema: Schema, object: JsonObject): void {
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (Object.hasOwn(object, key)) continue;
    const blank = blankMember(member);
    if (blank !== undefined) object[key] = blank;
    else if (schema.required?.includes(key) === true) object[key] = null;
  }
}

function decodeValue(schema: Schema, value: JsonValue, place: Place): void {
  if (value === null) return;
  if (isIntOrString(schema)) {
    if (typeof value !== "string" && !isInteger(value)) throw wrongType(value, "int32", place);
    return;
  }
  switch (schema.type) {
    case "object": {
      if (!isJsonObject(value)) throw wrongType(value, goType(schema), place);
      if (isOpenObject(schema)) return;
      decodeObject(schema, value, { ...place, struct: goTypeName(schema) ?? place.struct });
      return;
    }
    case "array": {
      if (!Array.isArray(value)) throw wrongType(value, goType(schema), place);
      const { items } = schema;
      if (items === undefined) return;
      // The path of an unknown field has the index, that of a type error does not; only the former is common.
      for (const [index, item] of value.entries()) {
        decodeValue(items, item, { ...place, path: `${place.path}[${index}]` });
      }
      return;
    }
    case "string": {
      if (typeof value !== "string") throw wrongType(value, goType(schema), place);
      checkFormat(schema, value);
      return;
    }
    case "boolean": {
      if (typeof value !== "boolean") throw wrongType(value, "bool", place);
      return;
    }
    case "integer": {
      if (!isInteger(value)) throw wrongType(value, goType(schema), place);
      return;
    }
    case "number": {
      if (typeof value !== "number" && !isRawNumber(value))
        throw wrongType(value, "float64", place);
      return;
    }
    case undefined:
      return;
  }
}

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const NOT_BASE64 = /[^A-Za-z0-9+/=\r\n]/;

function checkFormat(schema: Schema, value: string): void {
  if (schema.format === "byte") {
    const bad = NOT_BASE64.exec(value)?.index;
    if (bad !== undefined) throw new DecodeError(`illegal base64 data at input byte ${bad}`);
    const clean = value.replaceAll(/[\r\n]/g, "");
    if (clean.length % 4 !== 0) {
      throw new DecodeError(
        `illegal base64 data at input byte ${Math.floor(clean.length / 4) * 4}`,
      );
    }
  }
  if (schema.format !== "date-time") return;
  const isMicro = goTypeName(schema) === "MicroTime";
  if ((isMicro ? MICRO_TIME : TIME).test(value)) return;
  const layout = isMicro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
  throw new DecodeError(
    `parsing time ${JSON.stringify(value)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(value)} as "2006"`,
  );
}

function wrongType(value: JsonValue, expected: string, { path, struct }: Place): DecodeError {
  const field = path.replaceAll(/\[\d+\]/g, "");
  return new DecodeError(
    `json: cannot unmarshal ${describe(value)} into Go struct field ${struct}.${field} of type ${expected}`,
    unrestored(value, expected),
  );
}

/** The text of apimachinery's conversion of maps to structs. */
function unrestored(value: JsonValue, expected: string): string {
  const found = kindOf(value);
  if (expected.startsWith("map[")) return `cannot restore map from ${found}`;
  if (expected.startsWith("[]")) return `cannot restore slice from ${found}`;
  if (expected.startsWith("v1.")) return `cannot restore struct from: ${found}`;
  const isNumber = found === "int64" || found === "float64";
  const converts =
    isNumber && expected !== "bool" && !(found === "float64" && expected === "string");
  return converts ? `cannot convert ${found} to ${expected}` : `unrecognized type: ${expected}`;
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return "slice";
  if (isJsonObject(value)) return "map";
  if (isRawNumber(value) || typeof value === "number") {
    return Number.isInteger(Number(isRawNumber(value) ? value.rawJSON : value))
      ? "int64"
      : "float64";
  }
  return typeof value === "boolean" ? "bool" : "string";
}

function describe(value: JsonValue): string {
  if (Array.isArray(value)) return "array";
  if (isRawNumber(value)) return `number ${value.rawJSON}`;
  if (typeof value === "number") return Number.isInteger(value) ? "number" : `number ${value}`;
  return typeof value === "boolean" ? "bool" : typeof value;
}

function goType(schema: Schema): string {
  switch (schema.type) {
    case "array":
      return schema.items === undefined ? "[]interface {}" : `[]${goType(schema.items)}`;
    case "integer":
      return schema.format === "int32" ? "int32" : "int64";
    case "boolean":
      return "bool";
    case "object": {
      const { additionalProperties } = schema;
      if (typeof additionalProperties === "object")
        return `map[string]${goType(additionalProperties)}`;
      return `v1.${goTypeName(schema) ?? "Object"}`;
    }
    default:
      return schema.format === "byte" ? "[]uint8" : "string";
  }
}

const isInteger = (value: JsonValue): boolean => Number.isSafeInteger(value) || isRawNumber(value);

/** Go's zero value, for a null in a map. */
const zeroOf = (schema: Schema): JsonValue =>
  schema.type === "integer" ? 0 : schema.type === "boolean" ? false : "";

/** Omits lists and maps without content (`omitempty`); structs without content stay. */
function isEmptyCollection(schema: Schema, value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  const isMap = typeof schema.additionalProperties === "object";
  return isMap && isJsonObject(value) && Object.keys(value).length === 0;
}
