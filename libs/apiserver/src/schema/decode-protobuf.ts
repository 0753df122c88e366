import { parseJson, type JsonObject, type JsonValue } from "@konverge/core";
import {
  fieldNumbers,
  findBuiltinSchema,
  goTypeName,
  type FieldNumbers,
} from "./builtin-schemas.ts";
import { ProtobufError, readFields, readPacked, type WireField } from "./protobuf-reader.ts";
import { memberSchema, type Schema } from "./schema.ts";

/** The first bytes of a Kubernetes object in protobuf. */
const MAGIC = "k8s\0";

/**
 * Decodes an object in Kubernetes' protobuf encoding to the JSON that kube-apiserver reads from it.
 * @throws ProtobufError for other bytes, or an unknown kind
 */
export function decodeProtobuf(bytes: Uint8Array): JsonObject {
  if (Buffer.from(bytes.subarray(0, MAGIC.length)).toString("latin1") !== MAGIC) {
    throw new ProtobufError("provided data does not appear to be a protobuf message");
  }
  const envelope = readFields(bytes.subarray(MAGIC.length));
  const type = readFields(bytesOf(envelope, 1));
  const [apiVersion, kind] = [textOf(bytesOf(type, 1)), textOf(bytesOf(type, 2))];
  const schema = findBuiltinSchema(definitionOf(apiVersion, kind));
  if (schema === undefined) {
    throw new ProtobufError(`no kind "${kind}" is registered for version "${apiVersion}"`);
  }
  return { apiVersion, kind, ...readMessage(bytesOf(envelope, 2), schema, fieldNumbers(schema)) };
}

/** The name of a kind's definition: groups without their domain. */
function definitionOf(apiVersion: string, kind: string): string {
  if (kind === "DeleteOptions") return "meta.v1.DeleteOptions";
  const [group = "", version] = apiVersion.includes("/")
    ? apiVersion.split("/")
    : ["core", apiVersion];
  return `${group.split(".")[0]}.${version}.${kind}`;
}

function readMessage(bytes: Uint8Array, schema: Schema, numbers: FieldNumbers): JsonObject {
  const object: JsonObject = {};
  for (const field of readFields(bytes)) {
    const name = numbers[field.number];
    if (name === undefined) continue;
    if (typeof name === "string") setMember(object, name, schema, field);
    else Object.assign(object, readMessage(toBytes(field.value), schema, name));
  }
  return object;
}

/** A `*` before the name: a pointer in Go, so the zero value differs from an unset one. */
function setMember(object: JsonObject, name: string, schema: Schema, field: WireField): void {
  const isPointer = name.startsWith("*");
  const key = isPointer ? name.slice(1) : name;
  const member = memberSchema(schema, key);
  if (member === undefined) return;
  if (member.type === "array" && member.items !== undefined) {
    const items = (object[key] ??= []) as JsonValue[];
    items.push(...readItems(field, member.items));
    return;
  }
  if (typeof member.additionalProperties === "object") {
    const entry = readFields(toBytes(field.value));
    const map = (object[key] ??= {}) as JsonObject;
    const value = entry.find(({ number }) => number === 2);
    map[textOf(bytesOf(entry, 1))] = readEntry(value, member.additionalProperties);
    return;
  }
  const value = readValue(field.value, member);
  if (value === undefined || (!isPointer && isZero(value))) return;
  object[key] = value;
}

function readItems({ value }: WireField, items: Schema): JsonValue[] {
  if (items.type === "integer" && typeof value !== "bigint") {
    return readPacked(value).map((one) => readValue(one, items) ?? 0);
  }
  return [readValue(value, items) ?? null];
}

function readEntry(value: WireField | undefined, schema: Schema): JsonValue {
  // A string list is a message with the items.
  if (schema.type === "array" && schema.items !== undefined) {
    const { items } = schema;
    return readFields(toBytes(value?.value)).map((one) => readValue(one.value, items) ?? null);
  }
  return readValue(value?.value ?? new Uint8Array(), schema) ?? null;
}

const isZero = (value: JsonValue): boolean => value === "" || value === 0 || value === false;

function readValue(value: bigint | Uint8Array, schema: Schema): JsonValue | undefined {
  const special = SPECIAL[goTypeName(schema) ?? ""];
  if (special !== undefined) return special(toBytes(value));
  switch (schema.type) {
    case "boolean":
      return value !== 0n;
    case "integer":
      return toInteger(value);
    case "number":
      return typeof value === "bigint" ? toDouble(value) : undefined;
    case "object":
      return readMessage(toBytes(value), schema, fieldNumbers(schema));
    default:
      return schema.format === "byte"
        ? Buffer.from(toBytes(value)).toString("base64")
        : textOf(toBytes(value));
  }
}

/** Types with an encoding of their own, by the name of their definition. */
const SPECIAL: Readonly<Record<string, (bytes: Uint8Array) => JsonValue | undefined>> = {
  Quantity: (bytes) => textOf(bytesOf(readFields(bytes), 1)),
  IntOrString: (bytes) => {
    const fields = readFields(bytes);
    return numberOf(fields, 1) === 1 ? textOf(bytesOf(fields, 3)) : numberOf(fields, 2);
  },
  Time: (bytes) => readTime(bytes)?.replace(/\.\d+Z$/, "Z"),
  MicroTime: (bytes) => readTime(bytes),
  FieldsV1: readRaw,
  RawExtension: readRaw,
  JSON: readRaw,
  JSONSchemaPropsOrBool: (bytes) => {
    const fields = readFields(bytes);
    const inner = fields.find(({ number }) => number === 2);
    if (inner === undefined) return numberOf(fields, 1) === 1;
    return readSchema(inner.value);
  },
  JSONSchemaPropsOrArray: (bytes) => {
    const fields = readFields(bytes);
    const single = fields.find(({ number }) => number === 1);
    if (single !== undefined) return readSchema(single.value);
    return fields.map(({ value }) => readSchema(value));
  },
  JSONSchemaPropsOrStringArray: (bytes) => {
    const fields = readFields(bytes);
    const single = fields.find(({ number }) => number === 1);
    if (single !== undefined) return readSchema(single.value);
    return fields.map(({ value }) => textOf(toBytes(value)));
  },
};

function readSchema(value: bigint | Uint8Array): JsonObject {
  const props = findBuiltinSchema("apiextensions.v1.JSONSchemaProps");
  if (props === undefined) throw new ProtobufError("no definition of JSONSchemaProps");
  return readMessage(toBytes(value), props, fieldNumbers(props));
}

function readRaw(bytes: Uint8Array): JsonValue | undefined {
  const text = textOf(bytesOf(readFields(bytes), 1));
  return text === "" ? undefined : parseJson(text);
}

/** The zero time of Go is an empty message. */
function readTime(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0) return undefined;
  const fields = readFields(bytes);
  const [seconds, nanos] = [numberOf(fields, 1), numberOf(fields, 2)];
  const micros = String(Math.floor(nanos / 1_000)).padStart(6, "0");
  return new Date(seconds * 1_000).toISOString().replace(/\.\d+Z$/, `.${micros}Z`);
}

const bytesOf = (fields: readonly WireField[], number: number): Uint8Array =>
  toBytes(fields.findLast((field) => field.number === number)?.value);

function numberOf(fields: readonly WireField[], number: number): number {
  const value = fields.findLast((field) => field.number === number)?.value;
  return value === undefined ? 0 : Number(toInteger(value));
}

/** Negative numbers have ten bytes, as 64 bits. */
function toInteger(value: bigint | Uint8Array): JsonValue {
  if (typeof value !== "bigint") throw new ProtobufError("wrong wireType for an integer");
  const signed = BigInt.asIntN(64, value);
  const number = Number(signed);
  return Number.isSafeInteger(number) ? number : parseJson(String(signed));
}

function toDouble(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

function toBytes(value: bigint | Uint8Array | undefined): Uint8Array {
  if (value === undefined) return new Uint8Array();
  if (typeof value === "bigint") throw new ProtobufError("wrong wireType for a message");
  return value;
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
