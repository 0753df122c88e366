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
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "s", replicas: 2 } }),
        as: "made",
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}/status`,
        type: MERGE,
        body: { status: { replicas: 1, selector: "a=b" } },
        as: "status",
        expect: { code: 200 },
      },
      {
        send: `GET ${widgets}/{o}/scale`,
        expect: {
          code: 200,
          version: { sameAs: "status" },
          body: { kind: "Scale", spec: { replicas: 2 }, status: { replicas: 1, selector: "a=b" } },
        },
      },
      {
        send: `PUT ${widgets}/{o}/scale`,
        body: (seen) => ({
          apiVersion: "autoscaling/v1",
          kind: "Scale",
          metadata: { name: "{o}", namespace: "{ns}", resourceVersion: versionIn(seen, "made") },
          spec: { replicas: 5 },
        }),
        expect: { code: 409, reason: "Conflict" },
      },
      {
        send: `PATCH ${widgets}/{o}/scale`,
        type: MERGE,
        body: { metadata: { annotations: { dropped: "yes" } }, spec: { replicas: 5 } },
        expect: { code: 200, body: { spec: { replicas: 5 } } },
      },
      {
        send: `GET ${widgets}/{o}`,
        expect: {
          code: 200,
          generation: 2,
          absent: ["metadata.annotations"],
          body: { spec: { replicas: 5 } },
        },
      },
    ],
  },
  {
    name: "scale of a Deployment",
    steps: [
      { send: `POST ${deployments}`, body: deployment(), as: "made", expect: { code: 201 } },
      {
        send: `GET ${deployments}/{o}/scale`,
        expect: {
          code: 200,
          body: { spec: { replicas: 1 }, status: { replicas: 0, selector: "app={o}" } },
        },
      },
      {
        send: `PATCH ${deployments}/{o}/scale`,
        type: MERGE,
        body: { spec: { replicas: 0 } },
        expect: { code: 200, version: { newSince: "made" } },
      },
      {
        send: `GET ${deployments}/{o}`,
        expect: { code: 200, generation: 2, body: { spec: { replicas: 0 } } },
      },
    ],
  },
  {
    name: "Deployment: defaults and rejections",
    steps: [
      { send: `POST ${deployments}`, body: deployment(), expect: { code: 201 } },
      {
        send: `PATCH ${deployments}/{o}/status`,
        type: MERGE,
        body: { status: { replicas: 1, readyReplicas: 2, availableReplicas: 3 } },
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `PATCH ${deployments}/{o}`,
        type: MERGE,
        body: { spec: { selector: { matchLabels: { app: "other" } } } },
        expect: { code: 422, reason: "Invalid" },
        // Go prints a selector in struct order.
        ignore: ["message", "details.causes"],
      },
      {
        send: `POST ${deployments}`,
        body: deployment({ selector: { matchLabels: { app: "other" } } }, { name: "{o}-2" }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ field: "spec.template.metadata.labels" }],
        },
      },
      {
        send: `POST ${deployments}`,
        body: deployment({ replicas: -1 }, { name: "{o}-2" }),
        expect: { code: 422, reason: "Invalid", causes: [{ field: "spec.replicas" }] },
      },
      {
        send: `POST ${deployments}`,
        body: deployment({ replicas: "three" }, { name: "{o}-2" }),
        expect: { code: 400, reason: "BadRequest", message: /json: cannot unmarshal string/ },
      },
    ],
  },
  {
    name: "Lease: created by PUT, times with six digits, no unconditional update",
    steps: [
      {
        send: `PUT ${leases}/{o}`,
        body: lease({
          holderIdentity: "a",
          leaseDurationSeconds: 15,
          acquireTime: "2026-01-01T00:00:00.000000Z",
          renewTime: "2026-01-01T00:00:00.123456Z",
          leaseTransitions: 0,
        }),
        as: "made",
        expect: { code: 201, body: { spec: { holderIdentity: "a" } } },
      },
      {
        send: `PUT ${leases}/{o}`,
        body: lease({ holderIdentity: "b" }),
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `PUT ${leases}/{o}`,
        body: (seen) =>
          lease({ holderIdentity: "b" }, { resourceVersion: versionIn(seen, "made") }),
        expect: { code: 200, absent: ["metadata.generation"] },
      },
      {
        send: `PATCH ${leases}/{o}`,
        type: MERGE,
        body: { spec: { leaseDurationSeconds: 0 } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "spec.leaseDurationSeconds" }] },
      },
      {
        send: `POST ${leases}`,
        body: lease({ renewTime: "2026-01-01T00:00:00Z" }, { name: "{o}-2" }),
        expect: { code: 400, reason: "BadRequest" },
        ignore: ["message"],
      },
    ],
  },
  {
    name: "Event of core, and its events.k8s.io form",
    steps: [
      {
        send: `POST ${events}`,
        body: {
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
        as: "made",
        expect: { code: 201 },
      },
      {
        send: "GET /apis/events.k8s.io/v1/namespaces/{ns}/events/{o}",
        expect: { code: 200, body: { note: "a message", regarding: { name: "a" } } },
      },
      {
        send: `GET ${events}?fieldSelector=involvedObject.name%3Da,reason%3DTested`,
        expect: { code: 200 },
      },
      {
        send: `PATCH ${events}/{o}`,
        type: MERGE,
        body: { count: 2 },
        expect: { code: 200, version: { newSince: "made" } },
      },
    ],
  },
  {
    name: "a definition is established and served, and its deletion deletes its objects",
    steps: [
      {
        send: `POST ${definitions}`,
        body: definition({ type: "object", "x-kubernetes-preserve-unknown-fields": true }),
        expect: { code: 201, generation: 1, body: { status: { storedVersions: ["v1"] } } },
      },
      {
        send: "POST /apis/kinds.konverge.dev/v1/{o}s",
        body: {
          apiVersion: "kinds.konverge.dev/v1",
          kind: "Kind{o}",
          metadata: { name: "one" },
          any: 1,
        },
        retry: true,
        expect: { code: 201, body: { any: 1 } },
      },
      {
        send: `GET ${made}`,
        ignore: ["metadata", "status.conditions"],
        expect: {
          code: 200,
          body: { status: { acceptedNames: { plural: "{o}s", kind: "Kind{o}" } } },
        },
      },
      { send: "GET /apis/kinds.konverge.dev/v1/{o}s/one", expect: { code: 200 } },
      {
        send: `DELETE ${made}`,
        ignore: ["metadata", "status.conditions"],
        expect: { code: 200, body: { kind: "CustomResourceDefinition" } },
      },
      { send: `GET ${made}`, retry: true, expect: { code: 404 } },
      { send: "GET /apis/kinds.konverge.dev/v1/{o}s/one", retry: true, expect: { code: 404 } },
    ],
  },
  {
    name: "definitions that are rejected",
    steps: [
      {
        send: `POST ${definitions}`,
        body: { ...definition({ type: "object" }), metadata: { name: "wrong.kinds.konverge.dev" } },
        expect: { code: 422, reason: "Invalid" },
        ignore: ["message", "details.causes"],
      },
      {
        send: `POST ${definitions}`,
        body: definition({ type: "object", properties: { spec: { properties: {} } } }),
        expect: { code: 422, reason: "Invalid" },
        ignore: ["message", "details.causes"],
      },
    ],
  },
  {
    name: "another version of a custom resource: same object, other apiVersion",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "m" } }),
        as: "made",
        expect: { code: 201 },
      },
      {
        send: `GET /apis/${GROUP}/v1beta1/namespaces/{ns}/widgets/{o}`,
        expect: {
          code: 200,
          version: { sameAs: "made" },
          body: { apiVersion: `${GROUP}/v1beta1`, spec: { size: "m" } },
        },
      },
      {
        send: `PATCH /apis/${GROUP}/v1beta1/namespaces/{ns}/widgets/{o}`,
        type: MERGE,
        body: { spec: { size: "l" } },
        expect: { code: 200, generation: 2, version: { newSince: "made" } },
      },
      {
        send: `GET ${widgets}/{o}`,
        expect: { code: 200, body: { apiVersion: `${GROUP}/v1`, spec: { size: "l" } } },
      },
      { send: `GET /apis/${GROUP}/v2/namespaces/{ns}/widgets/{o}`, expect: { code: 404 } },
    ],
  },
  {
    name: "methods that a custom resource does not have",
    steps: [
      { send: `POST ${widgets}`, body: widget(), expect: { code: 201 } },
      { send: `PUT ${widgets}`, body: widget(), expect: { code: 400, reason: "BadRequest" } },
      {
        // The name in the path is ignored.
        send: `POST ${widgets}/{o}`,
        body: widget(),
        expect: { code: 409, reason: "AlreadyExists" },
      },
      { send: `PATCH ${widgets}/{o}`, text: "{}", type: "text/plain", expect: { code: 415 } },
      { send: `POST ${widgets}`, text: "{}", type: "text/plain", expect: { code: 415 } },
      { send: `POST ${widgets}`, text: "{", expect: { code: 400, reason: "BadRequest" } },
      { send: `POST ${widgets}`, body: { ...widget(), kind: "Gadget" }, expect: { code: 422 } },
      {
        send: `PUT ${widgets}/{o}`,
        body: widget({}, { name: "other", resourceVersion: "1" }),
        expect: { code: 400 },
      },
      {
        send: `PUT ${widgets}/none`,
        body: widget({}, { name: "none", resourceVersion: "1" }),
        expect: { code: 404 },
      },
    ],
  },
  {
    name: "discovery of the suite's group",
    steps: [
      {
        send: `GET /apis/${GROUP}`,
        expect: { code: 200, body: { preferredVersion: { version: "v1" } } },
      },
      { send: "GET /apis/none.example.com", expect: { code: 404 } },
      { send: "GET /healthz", expect: { code: 200 } },
      { send: "GET /livez", expect: { code: 200 } },
      { send: "GET /readyz", expect: { code: 200 } },
    ],
  },
];
