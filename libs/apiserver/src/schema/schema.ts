import type { ValidationRule } from "@konverge/cel";
import type { JsonValue } from "@konverge/core";

/** The part of OpenAPI v3 that structural schemas may use, for built-in kinds and custom resources. */
export interface Schema {
  type?: string;
  format?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: string[];
  default?: JsonValue;
  nullable?: boolean;
  enum?: JsonValue[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-embedded-resource"?: boolean;
  "x-kubernetes-list-type"?: string;
  "x-kubernetes-list-map-keys"?: string[];
  "x-kubernetes-map-type"?: string;
  "x-kubernetes-validations"?: ValidationRule[];
  "x-kubernetes-patch-merge-key"?: string;
  "x-kubernetes-patch-strategy"?: string;
  /** Name of a definition, only in the table of built-in schemas; resolved before use. */
  $ref?: string;
}

/** True for a value that may be an integer or a string. */
export const isIntOrString = (schema: Schema): boolean =>
  schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string";

/** Returns the schema of one member: declared, or of any member, or undefined if the member is unknown. */
export function memberSchema(schema: Schema, key: string): Schema | undefined {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key];
  if (typeof additionalProperties === "object") return additionalProperties;
  return undefined;
}

/** An object without declared members: any are allowed. */
export const isOpenObject = (schema: Schema): boolean =>
  schema["x-kubernetes-preserve-unknown-fields"] === true ||
  schema.additionalProperties === true ||
  (schema.type === "object" &&
    schema.properties === undefined &&
    schema.additionalProperties === undefined);
