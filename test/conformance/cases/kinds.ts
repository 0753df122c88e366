import type { JsonObject } from "@konverge/core";
import { versionIn, type Case } from "../case.ts";
import {
  definitions,
  deployment,
  deployments,
  events,
  GROUP,
  lease,
  leases,
  MERGE,
  widget,
  widgets,
} from "../objects.ts";
import { get, mergePatch, post, put, remove } from "../steps.ts";

const definition = (schema: JsonObject): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "{o}s.kinds.konverge.dev" },
  spec: {
    group: "kinds.konverge.dev",
    scope: "Cluster",
    names: { plural: "{o}s", kind: "Kind{o}" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
});
const made = `${definitions}/{o}s.kinds.konverge.dev`;

/** Special behavior of single kinds. */
export const kinds: readonly Case[] = [
  {
    name: "scale of a custom resource: the parent's version is its precondition",
    steps: [
      post(widgets, 201, widget({ spec: { size: "s", replicas: 2 } }), { as: "made" }),
      mergePatch(
        `${widgets}/{o}/status`,
        200,
        { status: { replicas: 1, selector: "a=b" } },
        { as: "status" },
      ),
      get(`${widgets}/{o}/scale`, {
        code: 200,
        version: { sameAs: "status" },
        body: { kind: "Scale", spec: { replicas: 2 }, status: { replicas: 1, selector: "a=b" } },
      }),
      put(`${widgets}/{o}/scale`, { code: 409, reason: "Conflict" }, (seen) => ({
        apiVersion: "autoscaling/v1",
        kind: "Scale",
        metadata: { name: "{o}", namespace: "{ns}", resourceVersion: versionIn(seen, "made") },
        spec: { replicas: 5 },
      })),
      mergePatch(
        `${widgets}/{o}/scale`,
        { code: 200, body: { spec: { replicas: 5 } } },
        { metadata: { annotations: { dropped: "yes" } }, spec: { replicas: 5 } },
      ),
      get(`${widgets}/{o}`, {
        code: 200,
        generation: 2,
        absent: ["metadata.annotations"],
        body: { spec: { replicas: 5 } },
      }),
    ],
  },
  {
    name: "scale of a Deployment",
    steps: [
      post(deployments, 201, deployment(), { as: "made" }),
      get(`${deployments}/{o}/scale`, {
        code: 200,
        body: { spec: { replicas: 1 }, status: { replicas: 0, selector: "app={o}" } },
      }),
      mergePatch(
        `${deployments}/{o}/scale`,
        { code: 200, version: { newSince: "made" } },
        { spec: { replicas: 0 } },
      ),
      get(`${deployments}/{o}`, { code: 200, generation: 2, body: { spec: { replicas: 0 } } }),
    ],
  },
  {
    name: "Deployment: defaults and rejections",
    steps: [
      post(deployments, 201, deployment()),
      mergePatch(
        `${deployments}/{o}/status`,
        { code: 422, reason: "Invalid" },
        { status: { replicas: 1, readyReplicas: 2, availableReplicas: 3 } },
      ),
      {
        send: `PATCH ${deployments}/{o}`,
        type: MERGE,
        body: { spec: { selector: { matchLabels: { app: "other" } } } },
        expect: { code: 422, reason: "Invalid" },
        // Go prints a selector in struct order.
        ignore: ["message", "details.causes"],
      },
      post(
        deployments,
        { code: 422, reason: "Invalid", causes: [{ field: "spec.template.metadata.labels" }] },
        deployment({ selector: { matchLabels: { app: "other" } } }, { name: "{o}-2" }),
      ),
      post(
        deployments,
        { code: 422, reason: "Invalid", causes: [{ field: "spec.replicas" }] },
        deployment({ replicas: -1 }, { name: "{o}-2" }),
      ),
      post(
        deployments,
        { code: 400, reason: "BadRequest", message: /json: cannot unmarshal string/ },
        deployment({ replicas: "three" }, { name: "{o}-2" }),
      ),
    ],
  },
  {
    name: "Lease: created by PUT, times with six digits, no unconditional update",
    steps: [
      put(
        `${leases}/{o}`,
        { code: 201, body: { spec: { holderIdentity: "a" } } },
        lease({
          holderIdentity: "a",
          leaseDurationSeconds: 15,
          acquireTime: "2026-01-01T00:00:00.000000Z",
          renewTime: "2026-01-01T00:00:00.123456Z",
          leaseTransitions: 0,
        }),
        { as: "made" },
      ),
      put(`${leases}/{o}`, { code: 422, reason: "Invalid" }, lease({ holderIdentity: "b" })),
      put(`${leases}/{o}`, { code: 200, absent: ["metadata.generation"] }, (seen) =>
        lease({ holderIdentity: "b" }, { resourceVersion: versionIn(seen, "made") }),
      ),
      mergePatch(
        `${leases}/{o}`,
        { code: 422, reason: "Invalid", causes: [{ field: "spec.leaseDurationSeconds" }] },
        { spec: { leaseDurationSeconds: 0 } },
      ),
      post(
        leases,
        { code: 400, reason: "BadRequest" },
        lease({ renewTime: "2026-01-01T00:00:00Z" }, { name: "{o}-2" }),
        { ignore: ["message"] },
      ),
    ],
  },
  {
    name: "Event of core, and its events.k8s.io form",
    steps: [
      post(
        events,
        201,
        {
          apiVersion: "v1",
          kind: "Event",
          metadata: { name: "{o}" },
          involvedObject: { apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "{ns}" },
          reason: "Tested",
          message: "a message",
          type: "Normal",
          count: 1,
          source: { component: "conformance" },
          firstTimestamp: "2026-01-01T00:00:00Z",
          lastTimestamp: "2026-01-01T00:00:00Z",
        },
        { as: "made" },
      ),
      get("/apis/events.k8s.io/v1/namespaces/{ns}/events/{o}", {
        code: 200,
        body: { note: "a message", regarding: { name: "a" } },
      }),
      get(`${events}?fieldSelector=involvedObject.name%3Da,reason%3DTested`, 200),
      mergePatch(`${events}/{o}`, { code: 200, version: { newSince: "made" } }, { count: 2 }),
    ],
  },
  {
    name: "a definition is established and served, and its deletion deletes its objects",
    waits: true,
    steps: [
      post(
        definitions,
        { code: 201, generation: 1, body: { status: { storedVersions: ["v1"] } } },
        definition({ type: "object", "x-kubernetes-preserve-unknown-fields": true }),
      ),
      post(
        "/apis/kinds.konverge.dev/v1/{o}s",
        { code: 201, body: { any: 1 } },
        { apiVersion: "kinds.konverge.dev/v1", kind: "Kind{o}", metadata: { name: "one" }, any: 1 },
        { retry: true },
      ),
      get(
        made,
        { code: 200, body: { status: { acceptedNames: { plural: "{o}s", kind: "Kind{o}" } } } },
        { ignore: ["metadata", "status.conditions"] },
      ),
      get("/apis/kinds.konverge.dev/v1/{o}s/one", 200),
      remove(
        made,
        { code: 200, body: { kind: "CustomResourceDefinition" } },
        { ignore: ["metadata", "status.conditions"] },
      ),
      get(made, 404, { retry: true }),
      get(
        "/apis/kinds.konverge.dev/v1/{o}s/one",
        // kube-apiserver still serves the kind for a moment, without objects.
        { code: 404, headers: { "content-type": /^text\/plain/ } },
        { retry: true },
      ),
    ],
  },
  {
    name: "definitions that are rejected",
    steps: [
      post(
        definitions,
        { code: 422, reason: "Invalid" },
        { ...definition({ type: "object" }), metadata: { name: "wrong.kinds.konverge.dev" } },
        { ignore: ["message", "details.causes"] },
      ),
      post(
        definitions,
        { code: 422, reason: "Invalid" },
        definition({ type: "object", properties: { spec: { properties: {} } } }),
        { ignore: ["message", "details.causes"] },
      ),
    ],
  },
  {
    name: "another version of a custom resource: same object, other apiVersion",
    steps: [
      post(widgets, 201, widget({ spec: { size: "m" } }), { as: "made" }),
      get(`/apis/${GROUP}/v1beta1/namespaces/{ns}/widgets/{o}`, {
        code: 200,
        version: { sameAs: "made" },
        body: { apiVersion: `${GROUP}/v1beta1`, spec: { size: "m" } },
      }),
      mergePatch(
        `/apis/${GROUP}/v1beta1/namespaces/{ns}/widgets/{o}`,
        { code: 200, generation: 2, version: { newSince: "made" } },
        { spec: { size: "l" } },
      ),
      get(`${widgets}/{o}`, {
        code: 200,
        body: { apiVersion: `${GROUP}/v1`, spec: { size: "l" } },
      }),
      get(`/apis/${GROUP}/v2/namespaces/{ns}/widgets/{o}`, 404),
    ],
  },
  {
    name: "methods that a custom resource does not have",
    steps: [
      post(widgets, 201, widget()),
      put(widgets, { code: 400, reason: "BadRequest" }, widget()),
      {
        // The name in the path is ignored.
        send: `POST ${widgets}/{o}`,
        body: widget(),
        expect: { code: 409, reason: "AlreadyExists" },
      },
      { send: `PATCH ${widgets}/{o}`, text: "{}", type: "text/plain", expect: { code: 415 } },
      { send: `POST ${widgets}`, text: "{}", type: "text/plain", expect: { code: 415 } },
      { send: `POST ${widgets}`, text: "{", expect: { code: 400, reason: "BadRequest" } },
      post(widgets, 422, { ...widget(), kind: "Gadget" }),
      put(`${widgets}/{o}`, 400, widget({}, { name: "other", resourceVersion: "1" })),
      put(`${widgets}/none`, 404, widget({}, { name: "none", resourceVersion: "1" })),
    ],
  },
  {
    name: "discovery of the suite's group",
    steps: [
      get(`/apis/${GROUP}`, { code: 200, body: { preferredVersion: { version: "v1" } } }),
      get("/apis/none.example.com", 404),
      get("/healthz", 200),
      get("/livez", 200),
      get("/readyz", 200),
    ],
  },
];
