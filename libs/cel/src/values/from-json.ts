import { isJsonObject, isRawNumber, type JsonValue } from "@konverge/core";
import { escapeName } from "../types/escape-name.ts";
import { additionalSchema, withTypeAndObjectMeta, type RuleSchema } from "../types/rule-schema.ts";
import { parseDateTime, parseGoDuration } from "./times.ts";
import { CelList, CelMap, Duration, Opaque, type ListIdentity, type Value } from "./value.ts";

/** Converts a valid JSON value to a value of CEL, by its schema. */
export function fromJson(schema: RuleSchema, json: JsonValue, isRoot = false): Value {
  if (json === null) return null;
  if (schema["x-kubernetes-int-or-string"] === true) {
    return typeof json === "string" ? json : toInt(json);
  }
  switch (schema.type) {
    case "object":
      return fromObject(isRoot ? withTypeAndObjectMeta(schema) : schema, json);
    case "array":
      return fromList(schema, json);
    case "string":
      return typeof json === "string" ? fromText(schema.format, json) : preserved(json);
    case "number":
      return isRawNumber(json) ? Number(json.rawJSON) : (json as number);
    case "integer":
      return toInt(json);
    case "boolean":
      return json === true;
    default:
      return preserved(json);
  }
}

/** A value without a type, which rules can only compare as a part of another. */
const preserved = (json: JsonValue) => new Opaque("unknown", json);

function toInt(json: JsonValue): Value {
  if (isRawNumber(json)) return BigInt(json.rawJSON);
  return typeof json === "number" && Number.isInteger(json) ? BigInt(json) : preserved(json);
}

function fromObject(schema: RuleSchema, json: JsonValue): Value {
  if (!isJsonObject(json)) return preserved(json);
  const isResource = schema["x-kubernetes-embedded-resource"] === true;
  const full = isResource ? withTypeAndObjectMeta(schema) : schema;
  const additional = additionalSchema(full);
  const isMap = full.properties === undefined && additional !== undefined;
  const entries: [string, Value][] = [];
  const unknown = new Map<string, JsonValue>();
  for (const [name, value] of Object.entries(json)) {
    const member = memberSchema(full, name) ?? (isMap ? additional : undefined);
    if (member === undefined) unknown.set(name, value);
    // A null of an optional field is the same as an absent field.
    else if (value !== null || isMap) {
      const key = isMap ? name : (escapeName(name) ?? name);
      entries.push([key, inner(member, value)]);
    }
  }
  return new CelMap(entries, unknown, Object.keys(json).length);
}

function memberSchema({ properties = {} }: RuleSchema, name: string): RuleSchema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

const inner = (schema: RuleSchema, json: JsonValue) =>
  fromJson(schema, json, schema["x-kubernetes-embedded-resource"] === true);

function fromList(schema: RuleSchema, json: JsonValue): Value {
  const { items = {} } = schema;
  if (!Array.isArray(json)) return preserved(json);
  return new CelList(
    json.map((item) => inner(items, item)),
    identityOf(schema),
  );
}

function identityOf(schema: RuleSchema): ListIdentity | undefined {
  switch (schema["x-kubernetes-list-type"]) {
    case "set":
      return {};
    case "map": {
      const keys = schema["x-kubernetes-list-map-keys"] ?? [];
      return { keys: keys.map((key) => escapeName(key) ?? key) };
    }
    default:
      return undefined;
  }
}

function fromText(format: string | undefined, text: string): Value {
  switch (format) {
    case "byte":
      return new Uint8Array(Buffer.from(text, "base64"));
    case "duration": {
      const nanos = parseGoDuration(text);
      return nanos === undefined ? preserved(text) : new Duration(nanos);
    }
    case "date":
    case "date-time":
      return parseDateTime(format === "date" ? `${text}T00:00:00Z` : text) ?? preserved(text);
    default:
      return text;
  }
}
