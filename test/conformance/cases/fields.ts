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
import { get, mergePatch, post } from "../steps.ts";

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
      post(`${configMaps}?fieldValidation=Odd`, { code: 422, reason: "Invalid" }, configMap()),
    ],
  },
  {
    name: "unknown fields of a custom resource are pruned",
    steps: [
      post(
        widgets,
        {
          code: 201,
          warnings: ['unknown field "spec.odd"', 'unknown field "top"'],
          absent: ["spec.odd", "top"],
          body: { spec: { free: { any: [1, { thing: true }] } } },
        },
        widget({ spec: { size: "s", odd: 1, free: { any: [1, { thing: true }] } }, top: 1 }),
      ),
      post(
        `${widgets}${strict}`,
        {
          code: 400,
          reason: "BadRequest",
          message: /strict decoding error: unknown field "spec.odd"$/,
        },
        widget({ spec: { size: "s", odd: 1 } }, { name: "{o}-2" }),
      ),
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
      mergePatch(
        `${gadgets}/{o}`,
        { code: 200, generation: 2, body: { spec: { safe: 4503599627370497 } } },
        { spec: { other: { deep: [null, 1.5] } } },
      ),
      get(`${gadgets}/{o}`, 200),
    ],
  },
  {
    name: "a kind without status subresource writes status with the other fields",
    steps: [
      post(
        gadgets,
        { code: 201, body: { status: { b: 1 } } },
        gadget({ spec: { a: 1 }, status: { b: 1 } }),
        { as: "made" },
      ),
      mergePatch(
        `${gadgets}/{o}`,
        { code: 200, version: { newSince: "made" }, generation: 2, body: { status: { b: 2 } } },
        { status: { b: 2 } },
      ),
      get(`${gadgets}/{o}/status`, 404),
    ],
  },
  {
    name: "defaults of a custom resource, also inside a default",
    steps: [
      post(
        widgets,
        {
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
        widget({ spec: { size: "s", ports: [{ name: "a" }], note: null } }),
      ),
      mergePatch(
        `${widgets}/{o}`,
        { code: 200, body: { spec: { replicas: 1, nested: { level: 3, more: "x" } } } },
        { spec: { replicas: null, nested: { level: null, more: "x" } } },
      ),
    ],
  },
  {
    name: "validation of a custom resource reports every invalid field",
    steps: [
      post(
        widgets,
        { code: 422, reason: "Invalid" },
        widget({
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
      ),
      post(
        widgets,
        { code: 422, reason: "Invalid" },
        widget({ spec: { replicas: 101, code: "a" } }),
      ),
      post(widgets, { code: 422, reason: "Invalid" }, widget({ spec: "s" })),
      post(
        widgets,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueDuplicate" }, { reason: "FieldValueDuplicate" }],
        },
        widget({ spec: { size: "s", tags: ["a", "a"], ports: [{ name: "x" }, { name: "x" }] } }),
      ),
      post(
        widgets,
        { code: 201, body: { spec: { port: "http" } } },
        widget({ spec: { size: "s", port: "http", ratio: 0.5, at: "2026-01-01T00:00:00Z" } }),
      ),
      mergePatch(
        `${widgets}/{o}`,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueNotSupported", field: "spec.size" }],
        },
        { spec: { port: 80, size: "xl" } },
      ),
      mergePatch(
        `${widgets}/{o}/status`,
        { code: 422, reason: "Invalid", causes: [{ field: "status.phase" }] },
        { status: { phase: "Odd" } },
      ),
      mergePatch(
        `${widgets}/{o}/status`,
        { code: 422, reason: "Invalid", causes: [{ reason: "FieldValueRequired" }] },
        { status: { conditions: [{ type: "Ready" }] } },
      ),
    ],
  },
  {
    name: "wrong types in the metadata of a custom resource",
    steps: [
      post(
        widgets,
        { code: 400, reason: "BadRequest", message: /json: cannot unmarshal number/ },
        widget({}, { labels: { a: 1 } }),
      ),
      post(
        widgets,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ field: "metadata.labels" }, { field: "metadata.annotations" }],
        },
        widget({}, { labels: { a: "not valid!" }, annotations: { "bad key": "x" } }),
      ),
    ],
  },
  {
    name: "Secret: stringData becomes data, invalid base64 is rejected",
    steps: [
      post(
        secrets,
        {
          code: 201,
          body: { type: "Opaque", data: { a: "MQ==", b: "Mg==" } },
          absent: ["stringData"],
        },
        secret({ data: { a: "MQ==" }, stringData: { b: "2" } }),
      ),
      post(
        secrets,
        { code: 400, reason: "BadRequest", message: /illegal base64 data at input byte 3/ },
        secret({ data: { a: "not base64!" } }, { name: "{o}-2" }),
      ),
      {
        send: `PATCH ${secrets}/{o}`,
        type: MERGE,
        body: { data: { a: "!" } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "patch" }] },
        // The rejected object is quoted in the order of Go's structs.
        ignore: ["message", "details.causes"],
      },
      mergePatch(
        `${secrets}/{o}`,
        { code: 422, reason: "Invalid", causes: [{ field: "type" }] },
        { type: "other" },
      ),
    ],
  },
  {
    name: "an immutable ConfigMap cannot change",
    steps: [
      post(configMaps, 201, configMap({ data: { a: "1" }, immutable: true })),
      mergePatch(
        `${configMaps}/{o}`,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueForbidden", field: "data" }],
        },
        { data: { a: "2" } },
      ),
      mergePatch(
        `${configMaps}/{o}`,
        { code: 422, causes: [{ field: "immutable" }] },
        { immutable: null },
      ),
      mergePatch(`${configMaps}/{o}`, 200, { metadata: { labels: { a: "b" } } }),
    ],
  },
  {
    name: "keys of a ConfigMap",
    steps: [
      post(
        configMaps,
        { code: 422, reason: "Invalid", causes: [{ field: "data[bad key]" }] },
        configMap({ data: { "bad key": "1" } }),
      ),
      post(
        configMaps,
        { code: 201, absent: ["data"], body: { binaryData: { a: "AQ==" } } },
        configMap({ data: {}, binaryData: { a: "AQ==" } }),
      ),
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
      post(
        configMaps,
        { code: 422, reason: "Invalid", causes: [{ field: "metadata.ownerReferences.kind" }] },
        configMap({}, { ownerReferences: [{ apiVersion: "v1", kind: "", name: "a", uid: "1" }] }),
      ),
      post(
        configMaps,
        { code: 422, reason: "Invalid" },
        configMap({}, { finalizers: ["not valid!"] }),
      ),
      post(
        configMaps,
        {
          code: 500,
          message: "resourceVersion should not be set on objects to be created",
          absent: ["reason"],
        },
        configMap({}, { resourceVersion: "5" }),
      ),
      post(
        configMaps,
        { code: 201, absent: ["metadata.deletionTimestamp"] },
        configMap(
          {},
          {
            uid: "x",
            creationTimestamp: "2001-01-01T00:00:00Z",
            deletionTimestamp: "2001-01-01T00:00:00Z",
          },
        ),
        { as: "made" },
      ),
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } },
        expect: { code: 422, reason: "Invalid" },
        // The offending value is a struct that Go prints in a format of its own.
        ignore: ["message", "details.causes"],
      },
      mergePatch(
        `${configMaps}/{o}`,
        { code: 200, version: { sameAs: "made" } },
        { metadata: { creationTimestamp: "2001-01-01T00:00:00Z" } },
      ),
      mergePatch(
        `${configMaps}/{o}`,
        { code: 400, reason: "BadRequest" },
        { metadata: { name: "other" } },
      ),
    ],
  },
  {
    name: "duplicate owner references are dropped with a warning",
    steps: [
      post(
        configMaps,
        {
          code: 201,
          body: {
            metadata: {
              ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1" }],
            },
          },
        },
        configMap(
          {},
          {
            ownerReferences: [
              { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1" },
              { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1" },
            ],
          },
        ),
      ),
    ],
  },
];
