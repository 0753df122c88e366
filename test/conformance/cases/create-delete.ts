import { uidIn, type Case } from "../case.ts";
import {
  configMap,
  configMaps,
  MERGE,
  widget,
  widgets,
  deployments,
  deployment,
} from "../objects.ts";

const FINALIZER = "example.com/hold";
/** Reported twice: by the common validation and by that of the kind. */
const NEW_FINALIZER = { reason: "FieldValueForbidden", field: "metadata.finalizers" };
const held = { finalizers: [FINALIZER] };

/** Names, dry runs, finalizers, namespaces. */
export const createDelete: readonly Case[] = [
  {
    name: "generateName",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "{o}-gen-" } },
        expect: { code: 201, body: { metadata: { generateName: "{o}-gen-" } } },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { generateName: "unused-" }),
        expect: { code: 201, body: { metadata: { name: "{o}" } } },
      },
    ],
  },
  {
    name: "dryRun changes nothing",
    steps: [
      {
        send: `POST ${configMaps}?dryRun=All`,
        body: configMap({ data: { a: "1" } }),
        expect: { code: 201, absent: ["metadata.resourceVersion"] },
      },
      { send: `GET ${configMaps}/{o}`, expect: { code: 404 } },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1" } }),
        as: "made",
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}?dryRun=All`,
        type: MERGE,
        body: { data: { a: "2" } },
        expect: { code: 200, version: { sameAs: "made" }, body: { data: { a: "2" } } },
      },
      {
        send: `DELETE ${configMaps}/{o}?dryRun=All`,
        expect: { code: 200, body: { status: "Success" } },
      },
      {
        send: `GET ${configMaps}/{o}`,
        expect: { code: 200, version: { sameAs: "made" }, body: { data: { a: "1" } } },
      },
      {
        send: `POST ${configMaps}?dryRun=Some`,
        body: configMap(),
        expect: { code: 422, reason: "Invalid" },
      },
    ],
  },
  {
    name: "delete without finalizers: removed, with a Status as response",
    steps: [
      { send: `POST ${widgets}`, body: widget(), as: "made", expect: { code: 201 } },
      {
        send: `DELETE ${widgets}/{o}`,
        expect: {
          code: 200,
          body: {
            status: "Success",
            details: { name: "{o}", group: "conformance.konverge.dev", kind: "widgets" },
          },
        },
      },
      { send: `GET ${widgets}/{o}`, expect: { code: 404, reason: "NotFound" } },
      { send: `DELETE ${widgets}/{o}`, expect: { code: 404, reason: "NotFound" } },
    ],
  },
  {
    name: "a finalizer keeps a deleted custom resource until it is removed",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({}, held),
        as: "made",
        expect: { code: 201, generation: 1 },
      },
      {
        send: `DELETE ${widgets}/{o}`,
        as: "marked",
        expect: {
          code: 200,
          version: { newSince: "made" },
          generation: 2,
          body: { kind: "Widget", metadata: { deletionGracePeriodSeconds: 0 } },
        },
      },
      {
        send: `DELETE ${widgets}/{o}`,
        expect: { code: 200, version: { sameAs: "marked" }, generation: 2 },
      },
      {
        send: `POST ${widgets}`,
        body: widget(),
        expect: { code: 409, reason: "AlreadyExists", message: /^object is being deleted: / },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { metadata: { finalizers: [FINALIZER, "example.com/more"] } },
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [NEW_FINALIZER, NEW_FINALIZER],
        },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { spec: { size: "l" } },
        expect: { code: 200, generation: 3 },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: MERGE,
        body: { metadata: { finalizers: null } },
        expect: { code: 200, absent: ["metadata.finalizers"] },
      },
      { send: `GET ${widgets}/{o}`, expect: { code: 404 } },
    ],
  },
  {
    name: "a finalizer keeps a deleted ConfigMap, which has no generation",
    steps: [
      { send: `POST ${configMaps}`, body: configMap({}, held), as: "made", expect: { code: 201 } },
      {
        send: `DELETE ${configMaps}/{o}`,
        expect: {
          code: 200,
          absent: ["metadata.generation"],
          body: { metadata: { deletionGracePeriodSeconds: 0 } },
        },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { deletionTimestamp: null, labels: { a: "b" } } },
        expect: { code: 200, body: { metadata: { labels: { a: "b" } } } },
      },
      {
        send: `PUT ${configMaps}/{o}`,
        body: configMap(),
        expect: { code: 200 },
      },
      { send: `GET ${configMaps}/{o}`, expect: { code: 404 } },
    ],
  },
  {
    name: "propagation policies are finalizers",
    steps: [
      { send: `POST ${configMaps}`, body: configMap(), expect: { code: 201 } },
      {
        send: `DELETE ${configMaps}/{o}`,
        body: { propagationPolicy: "Foreground" },
        expect: { code: 200, body: { metadata: { finalizers: ["foregroundDeletion"] } } },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { finalizers: null } },
        expect: { code: 200 },
      },
      { send: `POST ${configMaps}`, body: configMap(), expect: { code: 201 } },
      {
        send: `DELETE ${configMaps}/{o}?propagationPolicy=Orphan`,
        expect: { code: 200, body: { metadata: { finalizers: ["orphan"] } } },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { finalizers: null } },
        expect: { code: 200 },
      },
      { send: `POST ${configMaps}`, body: configMap(), expect: { code: 201 } },
      {
        send: `DELETE ${configMaps}/{o}`,
        body: { propagationPolicy: "Sideways" },
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `DELETE ${configMaps}/{o}`,
        body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" },
        expect: { code: 200, body: { status: "Success" } },
      },
    ],
  },
  {
    name: "deletecollection deletes the selected objects",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { name: "{o}-a", labels: { case: "{o}" } }),
        expect: { code: 201 },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { name: "{o}-b", labels: { case: "{o}" } }),
        expect: { code: 201 },
      },
      { send: `POST ${configMaps}`, body: configMap({}, { name: "{o}-c" }), expect: { code: 201 } },
      { send: `DELETE ${configMaps}?labelSelector=case%3D{o}`, expect: { code: 200 } },
      { send: `GET ${configMaps}/{o}-a`, expect: { code: 404 } },
      { send: `GET ${configMaps}/{o}-b`, expect: { code: 404 } },
      { send: `GET ${configMaps}/{o}-c`, expect: { code: 200 } },
    ],
  },
  {
    name: "a recreated object has another uid",
    steps: [
      { send: `POST ${deployments}`, body: deployment(), as: "first", expect: { code: 201 } },
      {
        send: `DELETE ${deployments}/{o}`,
        body: (seen) => ({ preconditions: { uid: uidIn(seen, "first") } }),
        expect: { code: 200 },
      },
      { send: `POST ${deployments}`, body: deployment(), as: "second", expect: { code: 201 } },
      {
        send: `DELETE ${deployments}/{o}`,
        body: (seen) => ({ preconditions: { uid: uidIn(seen, "first") } }),
        expect: { code: 409, reason: "Conflict" },
      },
    ],
  },
  {
    name: "a missing namespace, and a terminating one",
    steps: [
      {
        send: "POST /api/v1/namespaces/none/configmaps",
        body: configMap(),
        expect: { code: 404, reason: "NotFound", message: 'namespaces "none" not found' },
      },
      {
        send: "POST /api/v1/namespaces",
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "conformance-{o}" } },
        as: "made",
        expect: {
          code: 201,
          body: { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } },
        },
      },
      {
        send: "DELETE /api/v1/namespaces/conformance-{o}",
        expect: { code: 200, body: { status: { phase: "Terminating" } } },
      },
      {
        send: "POST /api/v1/namespaces/conformance-{o}/configmaps",
        body: configMap(),
        expect: {
          code: 403,
          reason: "Forbidden",
          causes: [{ reason: "NamespaceTerminating", field: "metadata.namespace" }],
        },
      },
      {
        send: "PUT /api/v1/namespaces/conformance-{o}/finalize",
        body: {
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: "conformance-{o}" },
          spec: {},
        },
        expect: { code: 200 },
      },
      { send: "GET /api/v1/namespaces/conformance-{o}", expect: { code: 404 } },
      {
        send: "DELETE /api/v1/namespaces/kube-system",
        expect: { code: 403, reason: "Forbidden" },
      },
    ],
  },
];
