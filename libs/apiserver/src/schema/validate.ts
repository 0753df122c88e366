import { compilePattern, isCheckedFormat } from "@konverge/cel";
import { isJsonObject, isRawNumber, jsonEquals, type JsonValue } from "@konverge/core";
import {
  duplicate,
  invalid,
  notSupported,
  required,
  showValue,
  tooLong,
  tooMany,
  typeInvalid,
  type FieldError,
} from "../errors/field-error.ts";
import { formatError } from "./string-formats.ts";
import { isIntOrString, memberSchema, type Schema } from "./schema.ts";

/**
 * Validates a value of a custom resource with the real server's texts. `before` is the replaced value: unchanged parts
 * are not reported (ratcheting, KEP-4008). CEL rules are in `validate-rules.ts`.
 */
export function validateValue(
  schema: Schema,
  value: JsonValue,
  path: string,
  before?: JsonValue,
): FieldError[] {
  if (before !== undefined && jsonEquals(value, before)) return [];
  if (value === null && schema.nullable === true) return validateEnum(schema, value, path);
  const errors = validateType(schema, value, path);
  if (errors.length > 0) return [...errors, ...validateEnum(schema, value, path)];
  errors.push(...validateCombinations(schema, value, path), ...validateEnum(schema, value, path));
  if (typeof value === "string") errors.push(...validateString(schema, value, path));
  else if (typeof value === "number") errors.push(...validateNumber(schema, value, path));
  else if (Array.isArray(value)) errors.push(...validateList(schema, value, path));
  else if (isJsonObject(value)) {
    errors.push(...validateObject(schema, value, path, isJsonObject(before) ? before : {}));
  }
  return errors;
}

/** As in the real server's library, null is not in an enum, even if the enum lists it. */
function validateEnum({ enum: values }: Schema, value: JsonValue, path: string): FieldError[] {
  if (values === undefined) return [];
  if (value !== null && values.some((one) => jsonEquals(one, value))) return [];
  const supported = values.map((one) => (typeof one === "string" ? one : showValue(one)));
  return [notSupported(path, value, supported)];
}

/** A path of Go that is nil, as the real server prints it. */
const NO_PATH = "<nil>";
const inBody = (path: string, text: string) => `${path} in body ${text}`;
const child = (path: string, key: string) => (path === "" ? key : `${path}.${key}`);

function validateType(schema: Schema, value: JsonValue, path: string): FieldError[] {
  const actual = typeName(value);
  const fail = (expected: string) => [
    typeInvalid(path, actual, inBody(path, `must be of type ${expected}: "${actual}"`)),
  ];
  if (isIntOrString(schema)) {
    return actual === "integer" || actual === "string" ? [] : fail("integer,string");
  }
  if (schema.type === undefined || schema.type === actual) return [];
  const { format = "" } = schema;
  if (schema.type === "string" && actual !== "null" && isCheckedFormat(format)) {
    // As in the real server's library, which checks no list and names the formats.
    if (actual === "array") return [];
    const found = FORMAT_OF_NUMBERS[actual] ?? "";
    return [typeInvalid(path, found, inBody(path, `must be of type ${format}: "${found}"`))];
  }
  if (schema.type === "number" && actual === "integer") return [];
  if (schema.type === "integer" && actual === "number") {
    return [...fail(schema.type), rangeError(schema, path)];
  }
  return fail(schema.type);
}

const FORMAT_OF_NUMBERS: Readonly<Record<string, string>> = { integer: "int64", number: "float64" };

/** The error of the range check in the real server's library, which has no field. */
function rangeError({ format }: Schema, path: string): FieldError {
  const named = format === undefined ? "(default format)" : `with format ${format}`;
  return invalid("<nil>", "", `Checked value must be of type integer ${named} in ${path}`);
}

function typeName(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (isRawNumber(value)) return "integer";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/**
 * Validates a value that is not null against the combined schemas. As in the real server's library, the error of a
 * combination has no path, and the errors of the schemas are reported beside it.
 */
function validateCombinations(schema: Schema, value: JsonValue, path: string): FieldError[] {
  const errorsOf = (schemas: readonly Schema[]) =>
    schemas.map((one) => validateValue(one, value, path));
  const countValid = (results: readonly FieldError[][]) =>
    results.filter((result) => result.length === 0).length;
  const fail = (text: string) => invalid(NO_PATH, "", `"${path}" ${text}`);
  const errors: FieldError[] = [];
  const { allOf = [], anyOf = [], oneOf = [], not } = schema;
  const anyResults = errorsOf(anyOf);
  if (anyOf.length > 0 && countValid(anyResults) === 0) {
    errors.push(fail("must validate at least one schema (anyOf)"), ...(anyResults[0] ?? []));
  }
  const oneResults = errorsOf(oneOf);
  const count = countValid(oneResults);
  if (oneOf.length > 0 && count !== 1) {
    const found = count === 0 ? "none valid" : `${count} valid alternatives`;
    errors.push(fail(`must validate one and only one schema (oneOf). Found ${found}`));
    if (count === 0) errors.push(...(oneResults[0] ?? []));
  }
  const allResults = errorsOf(allOf);
  errors.push(...allResults.flat());
  const valid = countValid(allResults);
  if (valid !== allOf.length) {
    const none = valid === 0 ? ". None validated" : "";
    errors.push(fail(`must validate all the schemas (allOf)${none}`));
  }
  if (not !== undefined && validateValue(not, value, path).length === 0) {
    errors.push(fail("must not validate the schema (not)"));
  }
  return errors;
}

/** For a string, only the first violation is reported, and its format. */
function validateString(schema: Schema, value: string, path: string): FieldError[] {
  const wrong = schema.format === undefined ? undefined : formatError(schema.format, value);
  const format = wrong === undefined ? [] : [typeInvalid(path, value, inBody(path, wrong))];
  const length = Array.from(value).length;
  if (schema.maxLength !== undefined && length > schema.maxLength) {
    return [tooLong(path, schema.maxLength), ...format];
  }
  if (schema.minLength !== undefined && length < schema.minLength) {
    const text = `should be at least ${schema.minLength} chars long`;
    return [invalid(path, value, inBody(path, text)), ...format];
  }
  if (schema.pattern !== undefined && !compilePattern(schema.pattern).test(value)) {
    return [invalid(path, value, inBody(path, `should match '${schema.pattern}'`)), ...format];
  }
  return format;
}

const INTEGER_RANGES: Readonly<Record<string, { lowest: number; highest: number }>> = {
  int32: { lowest: -(2 ** 31), highest: 2 ** 31 - 1 },
  uint32: { lowest: 0, highest: 2 ** 32 - 1 },
};

function validateNumber(schema: Schema, value: number, path: string): FieldError[] {
  const { minimum, maximum, multipleOf } = schema;
  const errors: FieldError[] = [];
  const range = schema.type === "number" ? undefined : INTEGER_RANGES[schema.format ?? ""];
  if (range !== undefined && (value < range.lowest || value > range.highest)) {
    errors.push(rangeError(schema, path));
  }
  const fail = (text: string) => errors.push(invalid(path, value, inBody(path, text)));
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum === true) {
      if (value >= maximum) fail(`should be less than ${maximum}`);
    } else if (value > maximum) fail(`should be less than or equal to ${maximum}`);
  }
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum === true) {
      if (value <= minimum) fail(`should be greater than ${minimum}`);
    } else if (value < minimum) fail(`should be greater than or equal to ${minimum}`);
  }
  if (multipleOf !== undefined && value % multipleOf !== 0)
    fail(`should be a multiple of ${multipleOf}`);
  return errors;
}

function validateList(schema: Schema, value: readonly JsonValue[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    errors.push(tooMany(path, value.length, schema.maxItems));
  }
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    const text = `should have at least ${schema.minItems} items`;
    errors.push(invalid(path, value.length, inBody(path, text)));
  }
  const { items } = schema;
  if (items !== undefined) {
    for (const [index, item] of value.entries()) {
      errors.push(...validateValue(items, item, `${path}[${index}]`));
    }
  }
  return errors;
}

function validateObject(
  schema: Schema,
  value: { readonly [key: string]: JsonValue },
  path: string,
  before: { readonly [key: string]: JsonValue },
): FieldError[] {
  const errors: FieldError[] = [];
  const count = Object.keys(value).length;
  if (schema.maxProperties !== undefined && count > schema.maxProperties) {
    errors.push(tooMany(path, count, schema.maxProperties));
  }
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    const text = `should have at least ${schema.minProperties} properties`;
    errors.push(invalid(path, count, inBody(path, text)));
  }
  for (const key of schema.required ?? []) {
    if (!Object.hasOwn(value, key)) errors.push(required(child(path, key)));
  }
  for (const [key, entry] of Object.entries(value)) {
    const member = memberSchema(schema, key);
    if (member !== undefined)
      errors.push(...validateValue(member, entry, child(path, key), before[key]));
  }
  return errors;
}

/** Finds duplicate items in a list of type `set` or `map`. */
export function validateListTypes(schema: Schema, value: JsonValue, path: string): FieldError[] {
  if (isJsonObject(value)) {
    return Object.entries(value).flatMap(([key, entry]) => {
      const member = memberSchema(schema, key);
      return member === undefined ? [] : validateListTypes(member, entry, child(path, key));
    });
  }
  const { items } = schema;
  if (!Array.isArray(value) || items === undefined) return [];
  const errors: FieldError[] = [];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const type = schema["x-kubernetes-list-type"];
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const place = `${path}[${index}]`;
    const identity = type === "map" && isJsonObject(item) ? pick(item, keys) : item;
    const text = JSON.stringify(identity);
    if ((type === "map" || type === "set") && seen.has(text))
      errors.push(duplicate(place, identity));
    seen.add(text);
    errors.push(...validateListTypes(items, item, place));
  }
  return errors;
}

function pick(item: { readonly [key: string]: JsonValue }, keys: readonly string[]): JsonValue {
  return Object.fromEntries(
    keys.toSorted().flatMap((key) => (item[key] === undefined ? [] : [[key, item[key]]])),
  );
}
