import { versionIn, type Case } from "../case.ts";
import {
  APPLY,
  configMap,
  configMaps,
  deployment,
  deployments,
  gadget,
  gadgets,
  JSON_PATCH,
  leases,
  lease,
  MERGE,
  STRATEGIC,
  widget,
  widgets,
} from "../objects.ts";

/** Rare cases that clients meet. */
export const edges: readonly Case[] = [
  {
    name: "finalizers without a domain: a warning for a custom resource, rejected for a ConfigMap",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({}, { finalizers: ["hold"] }),
        expect: { code: 201, headers: { warning: /prefer a domain-qualified finalizer name/ } },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { metadata: { labels: { a: "b" } } },
        expect: { code: 200, warnings: [] },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { metadata: { finalizers: null } },
        expect: { code: 200 },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { finalizers: ["hold"] }),
        expect: { code: 422, reason: "Invalid", causes: [{ field: "metadata.finalizers[0]" }] },
      },
      { send: `POST ${configMaps}`, body: configMap(), expect: { code: 201 } },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { finalizers: ["hold"] } },
        expect: { code: 422, reason: "Invalid" },
      },
    ],
  },
  {
    name: "nulls: dropped by a merge patch, kept where unknown fields are kept",
    steps: [
      {
        send: `POST ${gadgets}`,
        body: gadget({ spec: { a: null, list: [null, { b: null }], text: "" }, other: null }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: MERGE,
        body: { spec: { a: null, c: { d: null } } },
        expect: { code: 200 },
      },
      {
        send: `POST ${configMaps}`,
        text: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{o}","labels":null,"annotations":{}},"data":null}',
        expect: { code: 201, absent: ["data", "metadata.labels", "metadata.annotations"] },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: null, b: "" } }, { name: "{o}-2" }),
        expect: { code: 201, body: { data: { a: "", b: "" } } },
      },
      {
        send: `PATCH ${configMaps}/{o}-2`,
        type: MERGE,
        body: { data: null },
        expect: { code: 200, absent: ["data"] },
      },
    ],
  },
  {
    name: "numbers: non-integer floats, non-numeric texts, 64 bits",
    steps: [
      {
        send: `POST ${widgets}`,
        text: '{"apiVersion":"conformance.konverge.dev/v1","kind":"Widget","metadata":{"name":"{o}"},"spec":{"size":"s","replicas":2,"big":9007199254740993,"ratio":1}}',
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { replicas: 1.5 } },
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { replicas: "2" } },
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { note: "x" } },
        expect: { code: 200, generation: 2 },
      },
      {
        send: `PATCH ${deployments}/none`,
        type: MERGE,
        body: { spec: { replicas: 1.5 } },
        expect: { code: 404 },
      },
    ],
  },
  {
    name: "an invalid field is tolerated as long as it does not change",
    steps: [
      {
        send: `POST /apis/conformance.konverge.dev/v1beta1/namespaces/{ns}/widgets`,
        body: {
          apiVersion: "conformance.konverge.dev/v1beta1",
          kind: "Widget",
          metadata: { name: "{o}" },
          spec: { size: "enormous" },
        },
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { metadata: { labels: { a: "b" } } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { code: "abc" } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { size: "huge" } },
        expect: { code: 422 },
      },
    ],
  },
  {
    name: "content types that the client accepts",
    steps: [
      { send: `POST ${configMaps}`, body: configMap(), expect: { code: 201 } },
      {
        send: `GET ${configMaps}/{o}`,
        headers: { Accept: "application/json, */*" },
        expect: { code: 200 },
      },
      {
        send: `GET ${configMaps}/{o}`,
        headers: { Accept: "text/html" },
        expect: { code: 406, reason: "NotAcceptable" },
        ignore: ["message"],
      },
      {
        send: `GET ${widgets}/none`,
        headers: { Accept: "text/html" },
        expect: { code: 406 },
        ignore: ["message"],
      },
    ],
  },
  {
    name: "a body of more than 3 MiB",
    steps: [
      {
        send: `POST ${configMaps}`,
        text: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{o}"},"data":{"a":"${"x".repeat(3 * 1024 * 1024)}"}}`,
        expect: { code: 413, reason: "RequestEntityTooLarge" },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "x".repeat(1024 * 1024 + 1) } }),
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { annotations: { a: "x".repeat(256 * 1024) } }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueTooLong", field: "metadata.annotations" }],
        },
      },
    ],
  },
  {
    name: "names: on a PUT, in an apply, of namespaces, generated",
    steps: [
      { send: `POST ${configMaps}`, body: configMap(), expect: { code: 201 } },
      {
        send: `PUT ${configMaps}/{o}`,
        body: { apiVersion: "v1", kind: "ConfigMap", metadata: {} },
        expect: { code: 400 },
      },
      {
        send: `PUT ${configMaps}/{o}`,
        body: configMap({}, { name: "other" }),
        expect: { code: 400 },
      },
      {
        send: `PUT ${configMaps}/{o}`,
        body: configMap({}, { namespace: "other" }),
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `PATCH ${configMaps}/{o}-2?fieldManager=fm1`,
        type: APPLY,
        body: { apiVersion: "v1", kind: "ConfigMap", data: { a: "1" } },
        expect: { code: 400 },
      },
      {
        send: `PATCH ${configMaps}/{o}-2?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { a: "1" } }),
        expect: { code: 400 },
      },
      {
        send: "POST /api/v1/namespaces",
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "with.dot" } },
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: "POST /api/v1/namespaces",
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "{ns}" } },
        expect: { code: 409 },
      },
      {
        send: `POST ${widgets}`,
        body: { ...widget(), metadata: { generateName: `{o}-gen-` } },
        expect: { code: 201 },
      },
    ],
  },
  {
    name: "managedFields: written by a client, kept through a PUT without them, not changed through a subresource",
    steps: [
      { send: `POST ${widgets}`, body: widget(), as: "made", expect: { code: 201 } },
      {
        send: `PUT ${widgets}/{o}`,
        body: (seen) =>
          widget({ spec: { size: "l" } }, { resourceVersion: versionIn(seen, "made") }),
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}/status`,
        type: MERGE,
        body: { metadata: { managedFields: [] }, status: { phase: "Ready" } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: {
          metadata: {
            managedFields: [
              {
                manager: "made-up",
                operation: "Apply",
                apiVersion: "conformance.konverge.dev/v1",
                time: "2026-01-01T00:00:00Z",
                fieldsType: "FieldsV1",
                fieldsV1: { "f:spec": { "f:size": {} } },
              },
            ],
          },
        },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { metadata: { managedFields: [{}] } },
        expect: { code: 200, absent: ["metadata.managedFields"] },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { size: "m" } },
        expect: { code: 200, absent: ["metadata.managedFields"] },
      },
    ],
  },
  {
    name: "apply: labels and annotations, finalizers, owners",
    steps: [
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: widget(
          {},
          {
            labels: { a: "1", b: "1" },
            annotations: { c: "1" },
            finalizers: ["example.com/a"],
            ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "1" }],
          },
        ),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm2`,
        type: APPLY,
        body: {
          ...widget(
            {},
            {
              labels: { d: "1" },
              finalizers: ["example.com/b"],
              ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "y", uid: "2" }],
            },
          ),
          spec: {},
        },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: widget({}, { labels: { a: "2" } }),
        expect: { code: 200, absent: ["metadata.annotations"] },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm2&force=true`,
        type: APPLY,
        body: { ...widget(), spec: {} },
        expect: { code: 200, absent: ["metadata.finalizers"] },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm3&dryRun=All`,
        type: APPLY,
        body: { ...widget(), spec: { replicas: 9 } },
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "apply: a field that its manager omits returns to its default",
    steps: [
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: widget({
          spec: { size: "s", replicas: 4, nested: { level: 9 }, limits: { cpu: 1 } },
        }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: widget({ spec: { size: "s" } }),
        expect: {
          code: 200,
          body: { spec: { replicas: 1, nested: { level: 3 } } },
          absent: ["spec.limits"],
        },
      },
      {
        send: `PATCH ${deployments}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: deployment({ replicas: 4, paused: true, minReadySeconds: 5 }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${deployments}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: deployment(),
        expect: { code: 200, body: { spec: { replicas: 1 } } },
      },
    ],
  },
  {
    name: "a Lease can be patched, not created by a patch",
    steps: [
      {
        send: `PATCH ${leases}/{o}`,
        type: MERGE,
        body: { spec: { holderIdentity: "a" } },
        expect: { code: 404 },
      },
      { send: `POST ${leases}`, body: lease(), expect: { code: 201 } },
      {
        send: `PATCH ${leases}/{o}`,
        type: STRATEGIC,
        body: { spec: { holderIdentity: "a", leaseTransitions: 1 } },
        expect: { code: 200, body: { spec: { holderIdentity: "a" } } },
      },
      {
        send: `PATCH ${leases}/{o}`,
        type: MERGE,
        body: { spec: { holderIdentity: "" } },
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "lists over all namespaces, and of a missing namespace",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({}, { labels: { case: "{o}" } }),
        expect: { code: 201 },
      },
      {
        send: "GET /apis/conformance.konverge.dev/v1/widgets?labelSelector=case%3D{o}",
        expect: { code: 200 },
      },
      {
        send: "GET /apis/conformance.konverge.dev/v1/namespaces/none/widgets",
        ignore: ["metadata"],
        expect: { code: 200, body: { items: [] } },
      },
      { send: "GET /apis/conformance.konverge.dev/v1/widgets/{o}", expect: { code: 404 } },
      {
        send: "GET /api/v1/configmaps?fieldSelector=metadata.name%3Dno-such-name",
        ignore: ["metadata"],
        expect: { code: 200, body: { items: [] } },
      },
    ],
  },
  {
    name: "a list at a far future version: 504",
    steps: [
      {
        send: `GET ${configMaps}?resourceVersion=4000000000`,
        expect: { code: 504, reason: "Timeout", headers: { "retry-after": /^1$/ } },
      },
    ],
  },
  {
    name: "JSON Patch of whole objects, of metadata, of lists",
    steps: [
      {
        send: `POST ${gadgets}`,
        body: gadget({ spec: { list: [1, 2, 3] } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/spec/list", value: [1, 2, 3] },
          { op: "add", path: "/spec/list/1", value: { a: null } },
          { op: "add", path: "/spec/text", value: "a/b~c" },
          { op: "add", path: "/metadata/annotations", value: { "example.com/a": "1" } },
          { op: "replace", path: "/metadata/annotations/example.com~1a", value: "2" },
        ],
        expect: { code: 200, body: { spec: { list: [1, { a: null }, 2, 3] } } },
      },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: JSON_PATCH,
        body: [{ op: "add", path: "/spec/list/9", value: 1 }],
        expect: { code: 422 },
      },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: JSON_PATCH,
        body: [{ op: "replace", path: "/spec/none", value: 1 }],
        expect: { code: 200 },
      },
      { send: `PATCH ${gadgets}/{o}`, type: JSON_PATCH, body: [], expect: { code: 200 } },
    ],
  },
];
