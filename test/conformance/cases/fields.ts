import type { Case } from "../case.ts";
import {
  configMap,
  configMaps,
  gadget,
  gadgets,
  MERGE,
  secret,
  secrets,
  widget,
  widgets,
} from "../objects.ts";

const strict = "?fieldValidation=Strict";
/** Too large for a double, and a large one that is not. */
const bigText = `{"apiVersion":"conformance.konverge.dev/v1","kind":"Gadget","metadata":{"name":"{o}"},"spec":{"big":9007199254740993,"low":-9223372036854775808,"safe":4503599627370497}}`;

/** Unknown fields, types, defaults, big numbers. */
export const fields: readonly Case[] = [
  {
    name: "unknown and repeated fields of a ConfigMap: warned about, rejected, or ignored",
    steps: [
      {
        send: `POST ${configMaps}`,
        text: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{o}","odd":1},"data":{"a":"1"},"extra":true}',
        expect: {
          code: 201,
          warnings: ['unknown field "metadata.odd"', 'unknown field "extra"'],
          absent: ["extra", "metadata.odd"],
        },
      },
      {
        send: `POST ${configMaps}${strict}`,
        text: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{o}-2"},"data":{"a":"1"},"extra":true,"data":{"b":"1"}}',
        expect: {
          code: 400,
          reason: "BadRequest",
          message: /strict decoding error: unknown field "extra", duplicate field "data"$/,
        },
      },
      {
        send: `POST ${configMaps}?fieldValidation=Ignore`,
        text: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{o}-2"},"extra":true}',
        expect: { code: 201, warnings: [] },
      },
      {
        send: `POST ${configMaps}?fieldValidation=Odd`,
        body: configMap(),
        expect: { code: 422, reason: "Invalid" },
      },
    ],
  },
  {
    name: "unknown fields of a custom resource are pruned",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "s", odd: 1, free: { any: [1, { thing: true }] } }, top: 1 }),
        expect: {
          code: 201,
          warnings: ['unknown field "spec.odd"', 'unknown field "top"'],
          absent: ["spec.odd", "top"],
          body: { spec: { free: { any: [1, { thing: true }] } } },
        },
      },
      {
        send: `POST ${widgets}${strict}`,
        body: widget({ spec: { size: "s", odd: 1 } }, { name: "{o}-2" }),
        expect: {
          code: 400,
          reason: "BadRequest",
          message: /strict decoding error: unknown field "spec.odd"$/,
        },
      },
      {
        send: `PATCH ${widgets}/{o}${strict}`,
        type: MERGE,
        body: { spec: { odd: 1 } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "patch" }] },
        // The rejected object is quoted in the order of Go's structs.
        ignore: ["message", "details.causes"],
      },
    ],
  },
  {
    name: "a kind that preserves unknown fields keeps them, 64-bit integers included",
    steps: [
      { send: `POST ${gadgets}`, text: bigText, expect: { code: 201 }, as: "made" },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: MERGE,
        body: { spec: { other: { deep: [null, 1.5] } } },
        expect: { code: 200, generation: 2, body: { spec: { safe: 4503599627370497 } } },
      },
      { send: `GET ${gadgets}/{o}`, expect: { code: 200 } },
    ],
  },
  {
    name: "a kind without status subresource writes status with the other fields",
    steps: [
      {
        send: `POST ${gadgets}`,
        body: gadget({ spec: { a: 1 }, status: { b: 1 } }),
        as: "made",
        expect: { code: 201, body: { status: { b: 1 } } },
      },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: MERGE,
        body: { status: { b: 2 } },
        expect: {
          code: 200,
          version: { newSince: "made" },
          generation: 2,
          body: { status: { b: 2 } },
        },
      },
      { send: `GET ${gadgets}/{o}/status`, expect: { code: 404 } },
    ],
  },
  {
    name: "defaults of a custom resource, also inside a default",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "s", ports: [{ name: "a" }], note: null } }),
        expect: {
          code: 201,
          body: {
            spec: {
              replicas: 1,
              nested: { level: 3 },
              note: null,
              ports: [{ name: "a", protocol: "TCP" }],
            },
          },
        },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { replicas: null, nested: { level: null, more: "x" } } },
        expect: { code: 200, body: { spec: { replicas: 1, nested: { level: 3, more: "x" } } } },
      },
    ],
  },
  {
    name: "validation of a custom resource reports every invalid field",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({
          spec: {
            size: "xl",
            replicas: -1,
            code: "UPPER-CASE",
            ratio: 0,
            port: true,
            at: "yesterday",
            steps: ["a", "b", "c", "d"],
            limits: { cpu: "many" },
          },
        }),
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { replicas: 101, code: "a" } }),
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `POST ${widgets}`,
        body: widget({ spec: "s" }),
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `POST ${widgets}`,
        body: widget({
          spec: { size: "s", tags: ["a", "a"], ports: [{ name: "x" }, { name: "x" }] },
        }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueDuplicate" }, { reason: "FieldValueDuplicate" }],
        },
      },
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "s", port: "http", ratio: 0.5, at: "2026-01-01T00:00:00Z" } }),
        expect: { code: 201, body: { spec: { port: "http" } } },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { port: 80, size: "xl" } },
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueNotSupported", field: "spec.size" }],
        },
      },
      {
        send: `PATCH ${widgets}/{o}/status`,
        type: MERGE,
        body: { status: { phase: "Odd" } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "status.phase" }] },
      },
      {
        send: `PATCH ${widgets}/{o}/status`,
        type: MERGE,
        body: { status: { conditions: [{ type: "Ready" }] } },
        expect: { code: 422, reason: "Invalid", causes: [{ reason: "FieldValueRequired" }] },
      },
    ],
  },
  {
    name: "wrong types in the metadata of a custom resource",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({}, { labels: { a: 1 } }),
        expect: { code: 400, reason: "BadRequest", message: /json: cannot unmarshal number/ },
      },
      {
        send: `POST ${widgets}`,
        body: widget({}, { labels: { a: "not valid!" }, annotations: { "bad key": "x" } }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ field: "metadata.labels" }, { field: "metadata.annotations" }],
        },
      },
    ],
  },
  {
    name: "Secret: stringData becomes data, invalid base64 is rejected",
    steps: [
      {
        send: `POST ${secrets}`,
        body: secret({ data: { a: "MQ==" }, stringData: { b: "2" } }),
        expect: {
          code: 201,
          body: { type: "Opaque", data: { a: "MQ==", b: "Mg==" } },
          absent: ["stringData"],
        },
      },
      {
        send: `POST ${secrets}`,
        body: secret({ data: { a: "not base64!" } }, { name: "{o}-2" }),
        expect: { code: 400, reason: "BadRequest", message: /illegal base64 data at input byte 3/ },
      },
      {
        send: `PATCH ${secrets}/{o}`,
        type: MERGE,
        body: { data: { a: "!" } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "patch" }] },
        // The rejected object is quoted in the order of Go's structs.
        ignore: ["message", "details.causes"],
      },
      {
        send: `PATCH ${secrets}/{o}`,
        type: MERGE,
        body: { type: "other" },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "type" }] },
      },
    ],
  },
  {
    name: "an immutable ConfigMap cannot change",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1" }, immutable: true }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { data: { a: "2" } },
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueForbidden", field: "data" }],
        },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { immutable: null },
        expect: { code: 422, causes: [{ field: "immutable" }] },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { labels: { a: "b" } } },
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "keys of a ConfigMap",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { "bad key": "1" } }),
        expect: { code: 422, reason: "Invalid", causes: [{ field: "data[bad key]" }] },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: {}, binaryData: { a: "AQ==" } }),
        expect: { code: 201, absent: ["data"], body: { binaryData: { a: "AQ==" } } },
      },
    ],
  },
  {
    name: "metadata that is rejected",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap(
          {},
          {
            ownerReferences: [
              { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1", controller: true },
              { apiVersion: "v1", kind: "ConfigMap", name: "b", uid: "2", controller: true },
            ],
          },
        ),
        expect: { code: 422, reason: "Invalid", causes: [{ field: "metadata.ownerReferences" }] },
        // Go prints the references with all members in struct order.
        ignore: ["message", "details.causes"],
      },
      {
        send: `POST ${configMaps}`,
        body: configMap(
          {},
          { ownerReferences: [{ apiVersion: "v1", kind: "", name: "a", uid: "1" }] },
        ),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ field: "metadata.ownerReferences.kind" }],
        },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { finalizers: ["not valid!"] }),
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { resourceVersion: "5" }),
        expect: {
          code: 500,
          message: "resourceVersion should not be set on objects to be created",
          absent: ["reason"],
        },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap(
          {},
          {
            uid: "x",
            creationTimestamp: "2001-01-01T00:00:00Z",
            deletionTimestamp: "2001-01-01T00:00:00Z",
          },
        ),
        as: "made",
        expect: { code: 201, absent: ["metadata.deletionTimestamp"] },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } },
        expect: { code: 422, reason: "Invalid" },
        // The offending value is a struct that Go prints in a format of its own.
        ignore: ["message", "details.causes"],
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { creationTimestamp: "2001-01-01T00:00:00Z" } },
        expect: { code: 200, version: { sameAs: "made" } },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { name: "other" } },
        expect: { code: 400, reason: "BadRequest" },
      },
    ],
  },
  {
    name: "duplicate owner references are dropped with a warning",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap(
          {},
          {
            ownerReferences: [
              { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1" },
              { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1" },
            ],
          },
        ),
        expect: {
          code: 201,
          body: {
            metadata: {
              ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1" }],
            },
          },
        },
      },
    ],
  },
];
