import {
  invalid,
  notSupported,
  required,
  forbidden,
  tooLong,
  type FieldError,
} from "../errors/field-error.ts";
import { badRequest, invalidObject } from "../errors/status-error.ts";

/** Options of a write, from the query. */
export interface WriteOptions {
  readonly isDryRun: boolean;
  readonly fieldValidation: "Ignore" | "Strict" | "Warn";
  /** The field manager, for managedFields. */
  readonly manager: string;
  /** Take the fields of other managers (apply only). */
  readonly force: boolean;
}

const MANAGER_LIMIT_BYTES = 128;
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/**
 * Parses and validates the options of a write. The manager defaults to the product token of the user agent.
 * @throws StatusError 422 with a cause per invalid option
 */
export function readWriteOptions(
  kind: "CreateOptions" | "PatchOptions" | "UpdateOptions",
  query: URLSearchParams,
  userAgent: string,
  isApply = false,
): WriteOptions {
  const fieldManager = query.get("fieldManager") ?? "";
  const force = readBoolean(query, "force");
  const errors: FieldError[] = [];
  if (isApply && fieldManager === "") {
    errors.push(required("fieldManager", "is required for apply patch"));
  }
  if (kind === "PatchOptions" && !isApply && force !== undefined) {
    errors.push(forbidden("force", "may not be specified for non-apply patch"));
  }
  errors.push(...validateManager(fieldManager));
  const dryRun = query.getAll("dryRun");
  errors.push(...validateDryRun(dryRun));
  const fieldValidation = query.get("fieldValidation") ?? "";
  if (!isFieldValidation(fieldValidation)) {
    const supported = ["", "Ignore", "Strict", "Warn"];
    errors.push(notSupported("fieldValidation", fieldValidation, supported));
  }
  if (errors.length > 0) throw invalidObject({ group: "meta.k8s.io", kind }, "", errors);
  return {
    isDryRun: dryRun.length > 0,
    fieldValidation:
      fieldValidation === "Ignore" || fieldValidation === "Strict" ? fieldValidation : "Warn",
    manager: fieldManager === "" ? productOf(userAgent) : fieldManager,
    force: force === true,
  };
}

export const validateDryRun = (dryRun: readonly string[]): FieldError[] =>
  dryRun.every((one) => one === "All") ? [] : [notSupported("dryRun", [...dryRun], ["All"])];

/** @throws StatusError 400 for a non-boolean value */
export function readBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  if (["1", "t", "T", "true", "TRUE", "True"].includes(value)) return true;
  if (["", "0", "f", "F", "false", "FALSE", "False"].includes(value)) return false;
  throw badRequest(`strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`);
}

const isFieldValidation = (value: string) =>
  value === "" || value === "Ignore" || value === "Strict" || value === "Warn";

function validateManager(manager: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > MANAGER_LIMIT_BYTES) {
    errors.push(tooLong("fieldManager", MANAGER_LIMIT_BYTES));
  }
  let position = 0;
  for (const character of manager) {
    if (UNPRINTABLE.test(character)) {
      const point = character.codePointAt(0) ?? 0;
      const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
      errors.push(
        invalid("fieldManager", manager, `invalid character ${code} (at position ${position})`),
      );
    }
    position += Buffer.byteLength(character);
  }
  return errors;
}

/** The product token of a user agent, for example `konverge` of `konverge/1.0 (linux)`. */
function productOf(userAgent: string): string {
  const product = userAgent.split("/")[0] ?? "";
  return [...product].slice(0, MANAGER_LIMIT_BYTES).join("");
}
