import { isRawNumber, type JsonValue } from "@konverge/core";

/** Types of a field error, as used in a Status cause's `reason`. */
type FieldErrorType =
  | "FieldValueDuplicate"
  | "FieldValueForbidden"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueRequired"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "FieldValueTypeInvalid";

/** One reason why an object is invalid, with the texts of apimachinery's `field.Error`. */
export interface FieldError {
  readonly type: FieldErrorType;
  /** Path, for example `spec.replicas`. */
  readonly field: string;
  /** Text without the path, for example `Required value`. */
  readonly body: string;
}

const WORDS: Readonly<Record<FieldErrorType, string>> = {
  FieldValueDuplicate: "Duplicate value",
  FieldValueForbidden: "Forbidden",
  FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueRequired: "Required value",
  FieldValueTooLong: "Too long",
  FieldValueTooMany: "Too many",
  FieldValueTypeInvalid: "Invalid value",
};

function fieldError(
  type: FieldErrorType,
  field: string,
  value: JsonValue | undefined,
  detail: string,
): FieldError {
  let body = WORDS[type];
  if (value !== undefined) body += `: ${showValue(value)}`;
  if (detail !== "") body += `: ${detail}`;
  return { type, field, body };
}

export const invalid = (field: string, value: JsonValue, detail: string): FieldError =>
  fieldError("FieldValueInvalid", field, value, detail);

export const typeInvalid = (field: string, value: JsonValue, detail: string): FieldError =>
  fieldError("FieldValueTypeInvalid", field, value, detail);

export const required = (field: string, detail = ""): FieldError =>
  fieldError("FieldValueRequired", field, undefined, detail);

export const forbidden = (field: string, detail: string): FieldError =>
  fieldError("FieldValueForbidden", field, undefined, detail);

export const duplicate = (field: string, value: JsonValue): FieldError =>
  fieldError("FieldValueDuplicate", field, value, "");

export const tooLong = (field: string, max: number): FieldError =>
  fieldError(
    "FieldValueTooLong",
    field,
    undefined,
    `may not be more than ${max} ${max === 1 ? "byte" : "bytes"}`,
  );

export const tooMany = (field: string, actual: number, max: number): FieldError =>
  fieldError(
    "FieldValueTooMany",
    field,
    actual,
    `must have at most ${max} ${max === 1 ? "item" : "items"}`,
  );

export const notSupported = (
  field: string,
  value: JsonValue,
  supported: readonly string[],
): FieldError =>
  fieldError(
    "FieldValueNotSupported",
    field,
    value,
    `supported values: ${supported.map((one) => JSON.stringify(one)).join(", ")}`,
  );

/** Formats a value as Go prints it in an error: strings quoted, the rest as JSON. */
export function showValue(value: JsonValue): string {
  return isRawNumber(value) ? value.rawJSON : JSON.stringify(value);
}

/** Joins errors in one line, like Go's `ErrorList.ToAggregate`: repeated errors count once. */
export function joinFieldErrors(errors: readonly FieldError[]): string {
  const lines = [
    ...new Set(errors.map(({ field, body }) => `${field === "" ? "<nil>" : field}: ${body}`)),
  ];
  return lines.length === 1 ? String(lines[0]) : `[${lines.join(", ")}]`;
}
