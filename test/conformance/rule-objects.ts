import type { JsonObject } from "@konverge/core";

const GROUP = "conformance.konverge.dev";

/** Custom resources with CEL rules. */
export const gauges = `/apis/${GROUP}/v1/namespaces/{ns}/gauges`;

export const gauge = (spec: JsonObject, name = "{o}"): JsonObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: "Gauge",
  metadata: { name },
  spec,
});

const short = { type: "string", maxLength: 10 };
const rules = (...list: readonly (JsonObject | string)[]): JsonObject => ({
  "x-kubernetes-validations": list.map((one) => (typeof one === "string" ? { rule: one } : one)),
});
const immutable = rules({ rule: "self == oldSelf", message: "field is immutable" });
const positive = rules({ rule: "self > 0", message: "must be positive" });

const ports: JsonObject = {
  type: "array",
  maxItems: 5,
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["name"],
  items: {
    type: "object",
    required: ["name"],
    properties: { name: short, number: { type: "integer", ...positive } },
    ...rules({ rule: "self.number >= oldSelf.number", message: "must not shrink" }),
  },
};

const specSchema: JsonObject = {
  type: "object",
  properties: {
    min: { type: "integer" },
    max: { type: "integer" },
    size: { ...short, ...immutable },
    level: { type: "integer", default: 3, ...rules("self < 10") },
    ratio: { type: "number", ...rules("self * 2.0 <= 3.0") },
    "a-b": { type: "integer" },
    namespace: { ...short, pattern: "^[\\w-.]+$" },
    port: { "x-kubernetes-int-or-string": true, maxLength: 10 },
    note: { ...short, nullable: true, ...rules("self.startsWith('n')") },
    at: { type: "string", format: "date-time" },
    ports,
    steps: {
      type: "array",
      maxItems: 5,
      items: { type: "object", properties: { n: { type: "integer", ...positive } } },
    },
    tags: {
      type: "array",
      maxItems: 5,
      "x-kubernetes-list-type": "set",
      items: short,
      ...rules({ rule: "self == oldSelf", message: "tags are immutable" }),
    },
    limits: {
      type: "object",
      maxProperties: 5,
      additionalProperties: { type: "integer", ...positive },
    },
    born: {
      ...short,
      ...rules({
        rule: "oldSelf.hasValue() || self == 'new'",
        optionalOldSelf: true,
        message: "must begin as new",
      }),
    },
    embedded: {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      "x-kubernetes-preserve-unknown-fields": true,
      ...rules("self.kind != 'Forbidden' && self.metadata.name != 'forbidden'"),
    },
    free: { type: "object", "x-kubernetes-preserve-unknown-fields": true, ...immutable },
    reasons: {
      type: "object",
      properties: { f: { type: "boolean" }, r: { type: "boolean" }, d: { type: "boolean" } },
      ...rules(
        { rule: "!has(self.f)", reason: "FieldValueForbidden", message: "no f", fieldPath: ".f" },
        { rule: "!has(self.r)", reason: "FieldValueRequired", fieldPath: ".r" },
        { rule: "!has(self.d)", reason: "FieldValueDuplicate", message: "not shown" },
      ),
    },
  },
  ...rules(
    {
      rule: "!has(self.min) || !has(self.max) || self.min <= self.max",
      messageExpression: "'min %d exceeds max %d'.format([self.min, self.max])",
      message: "min exceeds max",
      fieldPath: ".min",
    },
    "!has(self.a__dash__b) || self.a__dash__b != 13",
    "!has(self.__namespace__) || self.__namespace__.size() > 1",
    { rule: "!has(self.port) || self.port < 1024 || self.port == 'any'", message: "high port" },
    "!has(self.at) || self.at.getFullYear() >= 2024",
    "!has(self.max) || self.max / (self.max - 7) < 100",
  ),
};

/** The definition of {@link gauges}. */
export const gaugeDefinition: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `gauges.${GROUP}` },
  spec: {
    group: GROUP,
    scope: "Namespaced",
    names: { plural: "gauges", kind: "Gauge" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: specSchema,
              status: {
                type: "object",
                properties: { ready: { type: "integer", ...rules("self >= oldSelf") } },
              },
            },
            ...rules({
              rule: "!self.metadata.name.endsWith('-bad')",
              message: "the name is taken",
            }),
          },
        },
      },
    ],
  },
};
