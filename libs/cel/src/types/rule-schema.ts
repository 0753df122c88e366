/** One entry of `x-kubernetes-validations`. */
export interface ValidationRule {
  /** A CEL expression over `self` and, for updates, `oldSelf`. It must be true. */
  readonly rule: string;
  readonly message?: string;
  /** A CEL expression with the message, used instead of `message`. */
  readonly messageExpression?: string;
  /** Default `FieldValueInvalid`. */
  readonly reason?: string;
  /** The field to which the error belongs, relative to the rule, for example `.min`. */
  readonly fieldPath?: string;
  /** Makes `oldSelf` an optional, so that the rule also runs when there is no earlier value. */
  readonly optionalOldSelf?: boolean;
}

/** The part of a structural schema that types and values of CEL depend on. */
export interface RuleSchema {
  readonly type?: string;
  readonly format?: string;
  readonly nullable?: boolean;
  readonly properties?: { readonly [name: string]: RuleSchema };
  readonly additionalProperties?: RuleSchema | boolean;
  readonly items?: RuleSchema;
  readonly allOf?: readonly RuleSchema[];
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: string;
  readonly "x-kubernetes-validations"?: readonly (ValidationRule | null)[];
}

/** The schema of additional properties, or undefined if any or none are allowed. */
export const additionalSchema = (schema: RuleSchema): RuleSchema | undefined =>
  typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;

/** Adds the fields that rules at the root of an object may always use. */
export function withTypeAndObjectMeta(schema: RuleSchema): RuleSchema {
  const text: RuleSchema = { type: "string" };
  return {
    ...schema,
    properties: {
      ...schema.properties,
      kind: text,
      apiVersion: text,
      metadata: { type: "object", properties: { name: text, generateName: text } },
    },
  };
}
