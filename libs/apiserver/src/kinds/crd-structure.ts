import type { JsonObject } from "@konverge/core";
import { forbidden, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";

/**
 * Checks the rules for structural schemas that users violate most: a type everywhere, and one way to declare an
 * object's members.
 */
export function structuralErrors(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (textOf(schema, "type") !== "object") {
    errors.push(
      textOf(schema, "type") === ""
        ? required(`${path}.type`, "must not be empty at the root")
        : {
            type: "FieldValueInvalid",
            field: `${path}.type`,
            body: `Invalid value: ${JSON.stringify(schema["type"])}: must be object at the root`,
          },
    );
  }
  errors.push(...membersErrors(schema, path));
  return errors;
}

function nodeErrors(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const isFree =
    schema["x-kubernetes-int-or-string"] === true ||
    schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (textOf(schema, "type") === "" && !isFree) {
    errors.push(required(`${path}.type`, "must not be empty for specified object fields"));
  }
  return [...errors, ...membersErrors(schema, path)];
}

function membersErrors(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const properties = objectOf(schema, "properties");
  const additional = objectOf(schema, "additionalProperties");
  if (properties !== undefined && schema["additionalProperties"] !== undefined) {
    errors.push(
      forbidden(
        `${path}.additionalProperties`,
        "additionalProperties and properties are mutual exclusive",
      ),
    );
  }
  if (schema["$ref"] !== undefined) {
    errors.push(forbidden(`${path}.$ref`, "$ref is not supported"));
  }
  for (const [key, member] of Object.entries(properties ?? {})) {
    const one = objectOf({ member }, "member");
    if (one !== undefined) errors.push(...nodeErrors(one, `${path}.properties[${key}]`));
  }
  if (additional !== undefined) {
    errors.push(...nodeErrors(additional, `${path}.additionalProperties`));
  }
  const items = objectOf(schema, "items");
  if (items !== undefined) errors.push(...nodeErrors(items, `${path}.items`));
  else if (textOf(schema, "type") === "array" && objectsOf(schema, "items").length === 0) {
    errors.push(required(`${path}.items`, "must be specified"));
  }
  return errors;
}
