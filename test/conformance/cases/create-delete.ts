import { uidIn, type Case } from "../case.ts";
import { configMap, configMaps, widget, widgets, deployments, deployment } from "../objects.ts";
import { get, mergePatch, post, put, remove } from "../steps.ts";

const FINALIZER = "example.com/hold";
/** Reported twice: by the common validation and by that of the kind. */
const NEW_FINALIZER = { reason: "FieldValueForbidden", field: "metadata.finalizers" };
const held = { finalizers: [FINALIZER] };

/** Names, dry runs, finalizers, namespaces. */
export const createDelete: readonly Case[] = [
  {
    name: "generateName",
    steps: [
      post(
        configMaps,
        { code: 201, body: { metadata: { generateName: "{o}-gen-" } } },
        { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "{o}-gen-" } },
      ),
      post(
        configMaps,
        { code: 201, body: { metadata: { name: "{o}" } } },
        configMap({}, { generateName: "unused-" }),
      ),
    ],
  },
  {
    name: "dryRun changes nothing",
    steps: [
      post(
        `${configMaps}?dryRun=All`,
        { code: 201, absent: ["metadata.resourceVersion"] },
        configMap({ data: { a: "1" } }),
      ),
      get(`${configMaps}/{o}`, 404),
      post(configMaps, 201, configMap({ data: { a: "1" } }), { as: "made" }),
      mergePatch(
        `${configMaps}/{o}?dryRun=All`,
        { code: 200, version: { sameAs: "made" }, body: { data: { a: "2" } } },
        { data: { a: "2" } },
      ),
      remove(`${configMaps}/{o}?dryRun=All`, { code: 200, body: { status: "Success" } }),
      get(`${configMaps}/{o}`, {
        code: 200,
        version: { sameAs: "made" },
        body: { data: { a: "1" } },
      }),
      post(`${configMaps}?dryRun=Some`, { code: 422, reason: "Invalid" }, configMap()),
    ],
  },
  {
    name: "delete without finalizers: removed, with a Status as response",
    steps: [
      post(widgets, 201, widget(), { as: "made" }),
      remove(`${widgets}/{o}`, {
        code: 200,
        body: {
          status: "Success",
          details: { name: "{o}", group: "conformance.konverge.dev", kind: "widgets" },
        },
      }),
      get(`${widgets}/{o}`, { code: 404, reason: "NotFound" }),
      remove(`${widgets}/{o}`, { code: 404, reason: "NotFound" }),
    ],
  },
  {
    name: "a finalizer keeps a deleted custom resource until it is removed",
    steps: [
      post(widgets, { code: 201, generation: 1 }, widget({}, held), { as: "made" }),
      remove(
        `${widgets}/{o}`,
        {
          code: 200,
          version: { newSince: "made" },
          generation: 2,
          body: { kind: "Widget", metadata: { deletionGracePeriodSeconds: 0 } },
        },
        { as: "marked" },
      ),
      remove(`${widgets}/{o}`, { code: 200, version: { sameAs: "marked" }, generation: 2 }),
      post(
        widgets,
        { code: 409, reason: "AlreadyExists", message: /^object is being deleted: / },
        widget(),
      ),
      mergePatch(
        `${widgets}/{o}`,
        { code: 422, reason: "Invalid", causes: [NEW_FINALIZER, NEW_FINALIZER] },
        { metadata: { finalizers: [FINALIZER, "example.com/more"] } },
      ),
      mergePatch(`${widgets}/{o}`, { code: 200, generation: 3 }, { spec: { size: "l" } }),
      mergePatch(
        `${widgets}/{o}`,
        { code: 200, absent: ["metadata.finalizers"] },
        { metadata: { finalizers: null } },
      ),
      get(`${widgets}/{o}`, 404),
    ],
  },
  {
    name: "a finalizer keeps a deleted ConfigMap, which has no generation",
    steps: [
      post(configMaps, 201, configMap({}, held), { as: "made" }),
      remove(`${configMaps}/{o}`, {
        code: 200,
        absent: ["metadata.generation"],
        body: { metadata: { deletionGracePeriodSeconds: 0 } },
      }),
      mergePatch(
        `${configMaps}/{o}`,
        { code: 200, body: { metadata: { labels: { a: "b" } } } },
        { metadata: { deletionTimestamp: null, labels: { a: "b" } } },
      ),
      put(`${configMaps}/{o}`, 200, configMap()),
      get(`${configMaps}/{o}`, 404),
    ],
  },
  {
    name: "propagation policies are finalizers",
    steps: [
      post(configMaps, 201, configMap()),
      remove(
        `${configMaps}/{o}`,
        { code: 200, body: { metadata: { finalizers: ["foregroundDeletion"] } } },
        { body: { propagationPolicy: "Foreground" } },
      ),
      mergePatch(`${configMaps}/{o}`, 200, { metadata: { finalizers: null } }),
      post(configMaps, 201, configMap()),
      remove(`${configMaps}/{o}?propagationPolicy=Orphan`, {
        code: 200,
        body: { metadata: { finalizers: ["orphan"] } },
      }),
      mergePatch(`${configMaps}/{o}`, 200, { metadata: { finalizers: null } }),
      post(configMaps, 201, configMap()),
      remove(
        `${configMaps}/{o}`,
        { code: 422, reason: "Invalid" },
        { body: { propagationPolicy: "Sideways" } },
      ),
      remove(
        `${configMaps}/{o}`,
        { code: 200, body: { status: "Success" } },
        { body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" } },
      ),
    ],
  },
  {
    name: "deletecollection deletes the selected objects",
    steps: [
      post(configMaps, 201, configMap({}, { name: "{o}-a", labels: { case: "{o}" } })),
      post(configMaps, 201, configMap({}, { name: "{o}-b", labels: { case: "{o}" } })),
      post(configMaps, 201, configMap({}, { name: "{o}-c" })),
      remove(`${configMaps}?labelSelector=case%3D{o}`, 200),
      get(`${configMaps}/{o}-a`, 404),
      get(`${configMaps}/{o}-b`, 404),
      get(`${configMaps}/{o}-c`, 200),
    ],
  },
  {
    name: "a recreated object has another uid",
    steps: [
      post(deployments, 201, deployment(), { as: "first" }),
      remove(`${deployments}/{o}`, 200, {
        body: (seen) => ({ preconditions: { uid: uidIn(seen, "first") } }),
      }),
      post(deployments, 201, deployment(), { as: "second" }),
      remove(
        `${deployments}/{o}`,
        { code: 409, reason: "Conflict" },
        { body: (seen) => ({ preconditions: { uid: uidIn(seen, "first") } }) },
      ),
    ],
  },
  {
    name: "a missing namespace, and a terminating one",
    steps: [
      post(
        "/api/v1/namespaces/none/configmaps",
        { code: 404, reason: "NotFound", message: 'namespaces "none" not found' },
        configMap(),
      ),
      post(
        "/api/v1/namespaces",
        { code: 201, body: { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } } },
        { apiVersion: "v1", kind: "Namespace", metadata: { name: "conformance-{o}" } },
        { as: "made" },
      ),
      remove("/api/v1/namespaces/conformance-{o}", {
        code: 200,
        body: { status: { phase: "Terminating" } },
      }),
      post(
        "/api/v1/namespaces/conformance-{o}/configmaps",
        {
          code: 403,
          reason: "Forbidden",
          causes: [{ reason: "NamespaceTerminating", field: "metadata.namespace" }],
        },
        configMap(),
      ),
      put("/api/v1/namespaces/conformance-{o}/finalize", 200, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "conformance-{o}" },
        spec: {},
      }),
      get("/api/v1/namespaces/conformance-{o}", 404),
      remove("/api/v1/namespaces/kube-system", { code: 403, reason: "Forbidden" }),
    ],
  },
];
