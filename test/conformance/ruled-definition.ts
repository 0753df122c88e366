import type { JsonObject } from "@konverge/core";

/** A schema with one rule. */
export const ruled = (rule: string, more: JsonObject = {}): JsonObject => ({
  type: "string",
  maxLength: 5,
  "x-kubernetes-validations": [{ rule, ...more }],
});
const group = "constants.konverge.dev";
/** A definition whose properties `f0`, `f1`, ... have these schemas. */
export const definition = (properties: readonly JsonObject[]): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `shows.${group}` },
  spec: {
    group,
    scope: "Cluster",
    names: { plural: "shows", kind: "Show" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: Object.fromEntries(properties.map((one, index) => [`f${index}`, one])),
          },
        },
      },
    ],
  },
});
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
