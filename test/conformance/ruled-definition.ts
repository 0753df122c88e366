import type { JsonObject } from "@konverge/core";

/** A schema with one rule. */
export const ruled = (rule: string, more: JsonObject = {}): JsonObject => ({
  type: "string",
  maxLength: 5,
  "x-kubernetes-validations": [{ rule, ...more }],
});
interface Named {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
}

/** A cluster-scoped definition of objects with these properties. */
export const definitionOf = (
  { group, plural, kind }: Named,
  properties: JsonObject,
): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: "Cluster",
    names: { plural, kind },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", properties } },
      },
    ],
  },
});

/** The properties `f0`, `f1`, ... with these schemas. */
export const numbered = (schemas: readonly JsonObject[]): JsonObject =>
  Object.fromEntries(schemas.map((one, index) => [`f${index}`, one]));

/** A definition whose properties `f0`, `f1`, ... have these schemas. */
export const definition = (schemas: readonly JsonObject[]): JsonObject =>
  definitionOf(
    { group: "constants.konverge.dev", plural: "shows", kind: "Show" },
    numbered(schemas),
  );

/** The cause for an invalid rule of the property with this index. */
export const invalid = (
  index: number,
  member: string,
  detail: string,
  rule: string,
  message = "",
) => {
  const shown = {
    Rule: rule,
    Message: "",
    MessageExpression: message,
    Reason: null,
    FieldPath: "",
    OptionalOldSelf: null,
  };
  const place = `spec.validation.openAPIV3Schema.properties[f${index}]`;
  return {
    field: `${place}.x-kubernetes-validations[0].${member}`,
    message: `Invalid value: ${JSON.stringify(shown)}: ${detail}`,
  };
};
