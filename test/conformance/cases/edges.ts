import { versionIn, type Case } from "../case.ts";
import {
  configMap,
  configMaps,
  deployment,
  deployments,
  gadget,
  gadgets,
  leases,
  lease,
  widget,
  widgets,
} from "../objects.ts";
import { applyPatch, get, jsonPatch, mergePatch, post, put, strategicPatch } from "../steps.ts";

/** Rare cases that clients meet. */
export const edges: readonly Case[] = [
  {
    name: "finalizers without a domain: a warning for a custom resource, rejected for a ConfigMap",
    steps: [
      post(
        widgets,
        { code: 201, headers: { warning: /prefer a domain-qualified finalizer name/ } },
        widget({}, { finalizers: ["hold"] }),
      ),
      mergePatch(
        `${widgets}/{o}`,
        { code: 200, warnings: [] },
        { metadata: { labels: { a: "b" } } },
      ),
      mergePatch(`${widgets}/{o}`, 200, { metadata: { finalizers: null } }),
      post(
        configMaps,
        { code: 422, reason: "Invalid", causes: [{ field: "metadata.finalizers[0]" }] },
        configMap({}, { finalizers: ["hold"] }),
      ),
      post(configMaps, 201, configMap()),
      mergePatch(
        `${configMaps}/{o}`,
        { code: 422, reason: "Invalid" },
        { metadata: { finalizers: ["hold"] } },
      ),
    ],
  },
  {
    name: "nulls: dropped by a merge patch, kept where unknown fields are kept",
    steps: [
      post(
        gadgets,
        201,
        gadget({ spec: { a: null, list: [null, { b: null }], text: "" }, other: null }),
      ),
      mergePatch(`${gadgets}/{o}`, 200, { spec: { a: null, c: { d: null } } }),
      {
        send: `POST ${configMaps}`,
        text: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{o}","labels":null,"annotations":{}},"data":null}',
        expect: { code: 201, absent: ["data", "metadata.labels", "metadata.annotations"] },
      },
      post(
        configMaps,
        { code: 201, body: { data: { a: "", b: "" } } },
        configMap({ data: { a: null, b: "" } }, { name: "{o}-2" }),
      ),
      mergePatch(`${configMaps}/{o}-2`, { code: 200, absent: ["data"] }, { data: null }),
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
      mergePatch(`${widgets}/{o}`, { code: 422, reason: "Invalid" }, { spec: { replicas: 1.5 } }),
      mergePatch(`${widgets}/{o}`, { code: 422, reason: "Invalid" }, { spec: { replicas: "2" } }),
      mergePatch(`${widgets}/{o}`, { code: 200, generation: 2 }, { spec: { note: "x" } }),
      mergePatch(`${deployments}/none`, 404, { spec: { replicas: 1.5 } }),
    ],
  },
  {
    name: "an invalid field is tolerated as long as it does not change",
    steps: [
      post(`/apis/conformance.konverge.dev/v1beta1/namespaces/{ns}/widgets`, 201, {
        apiVersion: "conformance.konverge.dev/v1beta1",
        kind: "Widget",
        metadata: { name: "{o}" },
        spec: { size: "enormous" },
      }),
      mergePatch(`${widgets}/{o}`, 200, { metadata: { labels: { a: "b" } } }),
      mergePatch(`${widgets}/{o}`, 200, { spec: { code: "abc" } }),
      mergePatch(`${widgets}/{o}`, 422, { spec: { size: "huge" } }),
    ],
  },
  {
    name: "content types that the client accepts",
    steps: [
      post(configMaps, 201, configMap()),
      {
        send: `GET ${configMaps}/{o}`,
        headers: { Accept: "application/json, */*" },
        expect: { code: 200 },
      },
      get(
        `${configMaps}/{o}`,
        { code: 406, reason: "NotAcceptable" },
        { headers: { Accept: "text/html" }, ignore: ["message"] },
      ),
      get(`${widgets}/none`, 406, { headers: { Accept: "text/html" }, ignore: ["message"] }),
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
      post(
        configMaps,
        { code: 422, reason: "Invalid" },
        configMap({ data: { a: "x".repeat(1024 * 1024 + 1) } }),
      ),
      post(
        configMaps,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueTooLong", field: "metadata.annotations" }],
        },
        configMap({}, { annotations: { a: "x".repeat(256 * 1024) } }),
      ),
    ],
  },
  {
    name: "names: on a PUT, in an apply, of namespaces, generated",
    steps: [
      post(configMaps, 201, configMap()),
      put(`${configMaps}/{o}`, 400, { apiVersion: "v1", kind: "ConfigMap", metadata: {} }),
      put(`${configMaps}/{o}`, 400, configMap({}, { name: "other" })),
      put(
        `${configMaps}/{o}`,
        { code: 400, reason: "BadRequest" },
        configMap({}, { namespace: "other" }),
      ),
      applyPatch(`${configMaps}/{o}-2?fieldManager=fm1`, 400, {
        apiVersion: "v1",
        kind: "ConfigMap",
        data: { a: "1" },
      }),
      applyPatch(`${configMaps}/{o}-2?fieldManager=fm1`, 400, configMap({ data: { a: "1" } })),
      post(
        "/api/v1/namespaces",
        { code: 422, reason: "Invalid" },
        { apiVersion: "v1", kind: "Namespace", metadata: { name: "with.dot" } },
      ),
      post("/api/v1/namespaces", 409, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "{ns}" },
      }),
      post(widgets, 201, { ...widget(), metadata: { generateName: `{o}-gen-` } }),
    ],
  },
  {
    name: "managedFields: written by a client, kept through a PUT without them, not changed through a subresource",
    steps: [
      post(widgets, 201, widget(), { as: "made" }),
      put(`${widgets}/{o}`, 200, (seen) =>
        widget({ spec: { size: "l" } }, { resourceVersion: versionIn(seen, "made") }),
      ),
      mergePatch(`${widgets}/{o}/status`, 200, {
        metadata: { managedFields: [] },
        status: { phase: "Ready" },
      }),
      mergePatch(`${widgets}/{o}`, 200, {
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
      }),
      mergePatch(
        `${widgets}/{o}`,
        { code: 200, absent: ["metadata.managedFields"] },
        { metadata: { managedFields: [{}] } },
      ),
      mergePatch(
        `${widgets}/{o}`,
        { code: 200, absent: ["metadata.managedFields"] },
        { spec: { size: "m" } },
      ),
    ],
  },
  {
    name: "apply: labels and annotations, finalizers, owners",
    steps: [
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        201,
        widget(
          {},
          {
            labels: { a: "1", b: "1" },
            annotations: { c: "1" },
            finalizers: ["example.com/a"],
            ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "1" }],
          },
        ),
      ),
      applyPatch(`${widgets}/{o}?fieldManager=fm2`, 200, {
        ...widget(
          {},
          {
            labels: { d: "1" },
            finalizers: ["example.com/b"],
            ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "y", uid: "2" }],
          },
        ),
        spec: {},
      }),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        { code: 200, absent: ["metadata.annotations"] },
        widget({}, { labels: { a: "2" } }),
      ),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm2&force=true`,
        { code: 200, absent: ["metadata.finalizers"] },
        { ...widget(), spec: {} },
      ),
      applyPatch(`${widgets}/{o}?fieldManager=fm3&dryRun=All`, 200, {
        ...widget(),
        spec: { replicas: 9 },
      }),
    ],
  },
  {
    name: "apply: a field that its manager omits returns to its default",
    steps: [
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        201,
        widget({ spec: { size: "s", replicas: 4, nested: { level: 9 }, limits: { cpu: 1 } } }),
      ),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        {
          code: 200,
          body: { spec: { replicas: 1, nested: { level: 3 } } },
          absent: ["spec.limits"],
        },
        widget({ spec: { size: "s" } }),
      ),
      applyPatch(
        `${deployments}/{o}?fieldManager=fm1`,
        201,
        deployment({ replicas: 4, paused: true, minReadySeconds: 5 }),
      ),
      applyPatch(
        `${deployments}/{o}?fieldManager=fm1`,
        { code: 200, body: { spec: { replicas: 1 } } },
        deployment(),
      ),
    ],
  },
  {
    name: "a Lease can be patched, not created by a patch",
    steps: [
      mergePatch(`${leases}/{o}`, 404, { spec: { holderIdentity: "a" } }),
      post(leases, 201, lease()),
      strategicPatch(
        `${leases}/{o}`,
        { code: 200, body: { spec: { holderIdentity: "a" } } },
        { spec: { holderIdentity: "a", leaseTransitions: 1 } },
      ),
      mergePatch(`${leases}/{o}`, 200, { spec: { holderIdentity: "" } }),
    ],
  },
  {
    name: "lists over all namespaces, and of a missing namespace",
    steps: [
      post(widgets, 201, widget({}, { labels: { case: "{o}" } })),
      get("/apis/conformance.konverge.dev/v1/widgets?labelSelector=case%3D{o}", 200),
      get(
        "/apis/conformance.konverge.dev/v1/namespaces/none/widgets",
        { code: 200, body: { items: [] } },
        { ignore: ["metadata"] },
      ),
      get("/apis/conformance.konverge.dev/v1/widgets/{o}", 404),
      get(
        "/api/v1/configmaps?fieldSelector=metadata.name%3Dno-such-name",
        { code: 200, body: { items: [] } },
        { ignore: ["metadata"] },
      ),
    ],
  },
  {
    name: "a list at a far future version: 504",
    waits: true,
    steps: [
      get(`${configMaps}?resourceVersion=4000000000`, {
        code: 504,
        reason: "Timeout",
        headers: { "retry-after": /^1$/ },
      }),
    ],
  },
  {
    name: "JSON Patch of whole objects, of metadata, of lists",
    steps: [
      post(gadgets, 201, gadget({ spec: { list: [1, 2, 3] } })),
      jsonPatch(`${gadgets}/{o}`, { code: 200, body: { spec: { list: [1, { a: null }, 2, 3] } } }, [
        { op: "test", path: "/spec/list", value: [1, 2, 3] },
        { op: "add", path: "/spec/list/1", value: { a: null } },
        { op: "add", path: "/spec/text", value: "a/b~c" },
        { op: "add", path: "/metadata/annotations", value: { "example.com/a": "1" } },
        { op: "replace", path: "/metadata/annotations/example.com~1a", value: "2" },
      ]),
      jsonPatch(`${gadgets}/{o}`, 422, [{ op: "add", path: "/spec/list/9", value: 1 }]),
      jsonPatch(`${gadgets}/{o}`, 200, [{ op: "replace", path: "/spec/none", value: 1 }]),
      jsonPatch(`${gadgets}/{o}`, 200, []),
    ],
  },
];
