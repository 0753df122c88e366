import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { z } from "zod";

/** The name of the keywords in the metadata of a zod schema. */
const METADATA = "x-konverge-keywords";

/** Keywords of a CRD's schema that a condition may contain as well. */
interface ValueKeywords {
  readonly format?: string;
  /** A regular expression of Go. */
  readonly pattern?: string;
  readonly enum?: readonly JsonValue[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly allOf?: readonly SchemaCondition[];
  readonly anyOf?: readonly SchemaCondition[];
  readonly oneOf?: readonly SchemaCondition[];
  readonly not?: SchemaCondition;
}

/** A schema below `allOf`, `anyOf`, `oneOf` or `not`, which accepts or rejects a value. */
export interface SchemaCondition extends ValueKeywords {
  readonly type?: string;
  readonly properties?: { readonly [name: string]: SchemaCondition };
  readonly additionalProperties?: SchemaCondition;
  readonly items?: SchemaCondition;
}

/** Keywords of a CRD's schema for which zod has no method. */
export interface SchemaKeywords extends ValueKeywords {
  readonly "x-kubernetes-list-type"?: "atomic" | "map" | "set";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: "atomic" | "granular";
  readonly "x-kubernetes-embedded-resource"?: boolean;
}

/**
 * Returns a check that adds keywords to the CRD of a zod schema. When zod parses a value, `findIssues` checks it; zod itself
 * has no such check.
 */
export function checkKeywords<T>(
  added: SchemaKeywords,
  findIssues: (value: JsonValue) => readonly string[],
): z.core.$ZodCheck<T> {
  // A check of its own kind would be refused as a rule that a CRD cannot contain.
  const check = z.meta<T>({});
  check._zod.check = (payload) => {
    for (const message of findIssues(payload.value as JsonValue)) {
      payload.issues.push({ code: "custom", message, input: payload.value });
    }
  };
  check._zod.onattach = [
    (schema) => {
      const existing = z.globalRegistry.get(schema) ?? {};
      const keywords = { ...keywordsOf(existing), ...added };
      z.globalRegistry.add(schema, { ...existing, [METADATA]: keywords });
    },
  ];
  return check;
}

/** Returns the keywords in the metadata of a zod schema, or in what zod prints of the schema. */
export function keywordsOf(metadata: { readonly [name: string]: unknown }): JsonObject {
  const keywords = metadata[METADATA] as JsonValue | undefined;
  return isJsonObject(keywords) ? keywords : {};
}
