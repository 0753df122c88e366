import type { JsonObject } from "@konverge/core";
import { gaugeDefinition } from "./rule-objects.ts";

/** Group of the suite's own custom resources. */
export const GROUP = "conformance.konverge.dev";

/** Paths in the namespace of the run. */
export const configMaps = "/api/v1/namespaces/{ns}/configmaps";
export const secrets = "/api/v1/namespaces/{ns}/secrets";
export const leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
export const deployments = "/apis/apps/v1/namespaces/{ns}/deployments";
export const widgets = `/apis/${GROUP}/v1/namespaces/{ns}/widgets`;
export const gadgets = `/apis/${GROUP}/v1/namespaces/{ns}/gadgets`;
export const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
export const events = "/api/v1/namespaces/{ns}/events";

export const MERGE = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";
export const STRATEGIC = "application/strategic-merge-patch+json";
export const APPLY = "application/apply-patch+yaml";

const meta = (metadata: JsonObject): JsonObject => ({ name: "{o}", ...metadata });

export const configMap = (content: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: meta(metadata),
  ...content,
});

export const secret = (content: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: meta(metadata),
  ...content,
});

export const lease = (spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: meta(metadata),
  spec,
});

export const widget = (content: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: "Widget",
  metadata: meta(metadata),
  spec: { size: "s" },
  ...content,
});

/** A kind without subresources that preserves unknown fields. */
export const gadget = (content: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: `${GROUP}/v1`,
  kind: "Gadget",
  metadata: meta(metadata),
  ...content,
});

export const deployment = (spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: meta(metadata),
  spec: {
    selector: { matchLabels: { app: "{o}" } },
    template: {
      metadata: { labels: { app: "{o}" } },
      spec: { containers: [{ name: "web", image: "example.com/web:1" }] },
    },
    ...spec,
  },
});

const widgetSchema: JsonObject = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "string", enum: ["s", "m", "l"] },
        replicas: { type: "integer", minimum: 0, maximum: 100, default: 1 },
        code: { type: "string", pattern: "^[a-z]+$", minLength: 2, maxLength: 5 },
        ratio: { type: "number", minimum: 0, exclusiveMinimum: true },
        port: { "x-kubernetes-int-or-string": true },
        note: { type: "string", nullable: true },
        at: { type: "string", format: "date-time" },
        steps: { type: "array", maxItems: 3, items: { type: "string" } },
        tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
        ports: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: {
            type: "object",
            required: ["name"],
            properties: {
              name: { type: "string" },
              number: { type: "integer" },
              protocol: { type: "string", default: "TCP" },
            },
          },
        },
        limits: { type: "object", additionalProperties: { type: "integer" } },
        whole: {
          type: "object",
          "x-kubernetes-map-type": "atomic",
          properties: { a: { type: "string" }, b: { type: "string" } },
        },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        nested: {
          type: "object",
          default: {},
          properties: { level: { type: "integer", default: 3 }, more: { type: "string" } },
        },
        big: { type: "integer", format: "int64" },
      },
    },
    status: {
      type: "object",
      properties: {
        replicas: { type: "integer" },
        phase: { type: "string", enum: ["Pending", "Ready"] },
        selector: { type: "string" },
        conditions: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["type"],
          items: {
            type: "object",
            required: ["type", "status"],
            properties: {
              type: { type: "string" },
              status: { type: "string" },
              reason: { type: "string" },
            },
          },
        },
      },
    },
  },
};

const definition = (plural: string, kind: string, versions: readonly JsonObject[]): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${plural}.${GROUP}` },
  spec: { group: GROUP, scope: "Namespaced", names: { plural, kind }, versions: [...versions] },
});

/** The objects that must exist before the first case. */
export const DEFINITIONS: readonly JsonObject[] = [
  definition("widgets", "Widget", [
    {
      name: "v1",
      served: true,
      storage: true,
      subresources: {
        status: {},
        scale: {
          specReplicasPath: ".spec.replicas",
          statusReplicasPath: ".status.replicas",
          labelSelectorPath: ".status.selector",
        },
      },
      selectableFields: [{ jsonPath: ".spec.size" }],
      schema: { openAPIV3Schema: widgetSchema },
    },
    {
      name: "v1beta1",
      served: true,
      storage: false,
      subresources: { status: {} },
      schema: {
        openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
  ]),
  definition("gadgets", "Gadget", [
    {
      name: "v1",
      served: true,
      storage: true,
      schema: {
        openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
  ]),
  gaugeDefinition,
];
