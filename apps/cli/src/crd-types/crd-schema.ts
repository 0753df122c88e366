import type { JsonValue } from "@konverge/core";
import type { RuleOptions, SchemaKeywords } from "@konverge/engine";

/** The used parts of an OpenAPI v3 schema of a CRD, which the API server requires to be structural. */
export interface CrdSchema extends SchemaKeywords {
  readonly type?: string;
  readonly description?: string;
  readonly default?: JsonValue;
  readonly nullable?: boolean;
  readonly properties?: { readonly [name: string]: CrdSchema };
  readonly additionalProperties?: CrdSchema | boolean;
  readonly items?: CrdSchema;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-validations"?: readonly (RuleOptions & { readonly rule: string })[];
}

/** One version of a kind, as a CRD defines it. */
export interface CrdKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly schema: CrdSchema;
}
