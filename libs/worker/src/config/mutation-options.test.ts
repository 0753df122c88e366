import { ClusterRole, ConfigMap, Deployment, Secret } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { requiredAccess } from "./controller-access.ts";
import { defineConfig } from "./define-config.ts";
import { findMutationIssues, openKindsOf } from "./mutation-options.ts";
import { sensitiveResources } from "./sensitive-resources.ts";

const detailsOf = (options: unknown) => findMutationIssues(options).map(({ detail }) => detail);

test("opens the listed kinds with their restrictions, and a second time what it has returned", () => {
  const mutations = {
    kinds: [
      ConfigMap,
      { type: Deployment, paths: ["/spec/replicas", "/metadata/labels"], role: "admin" as const },
      { type: Secret, sensitive: true },
    ],
  };
  const config = defineConfig({ mutations });
  expect(defineConfig(config)).toEqual(config);
  expect(openKindsOf(config.mutations)).toEqual([
    { group: "", version: "v1", kind: "ConfigMap", resource: "configmaps", scope: "Namespaced" },
    {
      group: "apps",
      version: "v1",
      kind: "Deployment",
      resource: "deployments",
      scope: "Namespaced",
      paths: ["/spec/replicas", "/metadata/labels"],
      role: "admin",
    },
    {
      group: "",
      version: "v1",
      kind: "Secret",
      resource: "secrets",
      scope: "Namespaced",
      sensitive: true,
    },
  ]);
  expect(sensitiveResources(config)).toEqual(["secrets"]);
});

test.each([
  [{}, "mutations.kinds: must be a list of kinds, or of { type, paths }"],
  [{ kinds: [], paths: [] }, "mutations.paths: is unknown; valid options: kinds"],
  [{ kinds: ["ConfigMap"] }, "mutations.kinds.0: must be a kind, or { type, paths }"],
  [{ kinds: [{ type: {} }] }, "mutations.kinds.0: type must be a kind"],
  [{ kinds: [{ type: ConfigMap, path: "/data" }] }, "mutations.kinds.0: path is unknown"],
  [
    { kinds: [{ type: ConfigMap, paths: ["data"] }] },
    'paths must be JSON Pointers, such as "/spec/replicas" (got "data")',
  ],
  [{ kinds: [{ type: ConfigMap, paths: "/data" }] }, "paths must be JSON Pointers"],
  [{ kinds: [{ type: ConfigMap, role: "viewer" }] }, 'role must be "admin" (got "viewer")'],
  [{ kinds: [Secret] }, "Secret holds secrets or grants permissions; set sensitive: true"],
  [{ kinds: [{ type: ClusterRole }] }, "ClusterRole holds secrets or grants permissions"],
  [{ kinds: [ConfigMap, { type: ConfigMap }] }, 'kinds.1: "configmaps" is in the list twice'],
])("rejects %j", (options, detail) => {
  expect(detailsOf(options)).toEqual([expect.stringContaining(detail)]);
});

test("reserves the name of the queue of mutations", () => {
  const controllers = [{ name: "mutations" }] as never;
  expect(() => defineConfig({ controllers })).toThrow(
    'the name "mutations" is reserved; use another name',
  );
});

test("grants the calls of mutations", () => {
  const kinds = [
    { type: Deployment, paths: ["/spec/replicas"] },
    { type: ConfigMap, paths: ["/data"] },
  ];
  const { cluster } = requiredAccess(
    { controllers: [], workflows: [], mutations: { kinds } },
    { installation: "konverge", leaseNamespace: "tools" },
  );
  const rules = cluster.map(({ verbs, resources }) => `${verbs.join()}: ${resources.join()}`);
  expect(rules.slice(-3)).toEqual([
    "get,create,patch: configmaps",
    "get,create,patch: deployments",
    "get,patch: deployments/scale",
  ]);
});
