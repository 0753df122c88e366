import type { ResourceType } from "@konverge/core";
import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import { requiredAccess } from "./controller-access.ts";
import { defineController, type ControllerOptions, defineResource } from "@konverge/engine";

const kind = (resource: string): ResourceType => ({
  group: "",
  version: "v1",
  kind: "Any",
  resource,
  scope: "Namespaced",
});
const Plain = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Plain",
  spec: z.object({}),
});

/** Each rule as `verbs: resources`. */
function rulesOf(options: Partial<ControllerOptions<never>>): string[] {
  const controller = defineController({
    name: "plain",
    for: Plain,
    reconcile: async () => undefined,
    ...(options as object),
  });
  const { cluster } = requiredAccess(
    { controllers: [controller], workflows: [] },
    { installation: "konverge", leaseNamespace: "tools" },
  );
  return cluster
    .filter(
      ({ resourceNames, resources }) => resourceNames === undefined && resources[0] !== "events",
    )
    .map(({ verbs, resources }) => `${verbs.join()}: ${resources.join()}`);
}

test("grants the status only for kinds that have one or may have one", () => {
  expect(rulesOf({})).toEqual(["get,list,watch,patch: plains"]);
  expect(rulesOf({ for: kind("pods") as never })).toEqual([
    "get,list,watch,patch: pods",
    "patch: pods/status",
  ]);
});

test("grants only reads for watched kinds", () => {
  const watches = [{ type: kind("secrets"), map: () => [] }];
  expect(rulesOf({ watches })).toContain("get,list,watch: secrets");
});

test("grants reads of Namespaces to a worker that follows them by labels", () => {
  const follow = "get,list,watch: namespaces";
  expect(rulesOf({})).not.toContain(follow);
  const namespaces = { labels: "team=shop" };
  expect(rulesOf({ owns: [{ type: kind("configmaps"), namespaces }] })).toContain(follow);
  const controller = defineController({ name: "a", for: Plain, reconcile: async () => undefined });
  const access = requiredAccess(
    { controllers: [controller], workflows: [] },
    { installation: "konverge", leaseNamespace: "tools", namespaces },
  );
  expect(access.namespaces).toBeUndefined();
  expect(access.cluster).toContainEqual({
    apiGroups: [""],
    resources: ["namespaces"],
    verbs: ["get", "list", "watch"],
  });
});

test("permissions replace the default writes of a kind", () => {
  const owns = [kind("configmaps")];
  expect(rulesOf({ owns })).toContain("get,list,watch,create,patch,delete: configmaps");
  const permissions = [
    { type: kind("configmaps"), verbs: ["create"] },
    { type: Plain, verbs: ["get"] },
    { type: kind("pods"), verbs: ["create"], subresource: "eviction" },
  ] as const;
  expect(rulesOf({ owns, permissions })).toEqual([
    "get,list,watch,create: configmaps",
    "create: pods/eviction",
    "get,list,watch: plains",
    "update: plains/finalizers",
  ]);
});

test("grants the finalizer write regardless of permissions", () => {
  const permissions = [{ type: Plain, verbs: ["get"] }] as const;
  for (const cleanup of ["abandon", async () => undefined] as const) {
    expect(rulesOf({ permissions, cleanup })).toEqual(["get,list,watch,patch: plains"]);
  }
});

test("two controllers share a role and have their own Leases", () => {
  const controllers = ["b", "a"].map((name) =>
    defineController({ name, for: Plain, reconcile: async () => undefined }),
  );
  const { cluster, leases } = requiredAccess(
    { controllers, workflows: [] },
    { installation: "shop", leaseNamespace: "tools" },
  );
  expect(cluster).toHaveLength(5);
  // To report a CRD that differs from its definition.
  expect(cluster[3]).toEqual({
    apiGroups: ["apiextensions.k8s.io"],
    resources: ["customresourcedefinitions"],
    resourceNames: ["plains.demo.konverge.dev"],
    verbs: ["get"],
  });
  expect(leases.at(-1)?.resourceNames).toEqual(["shop-a", "shop-b", "shop-redis.progress"]);
});

test("rejects a permission that RBAC cannot grant", () => {
  const verbs = ["read"] as never;
  expect(() => rulesOf({ permissions: [{ type: Plain, verbs }] })).toThrow(
    "permissions: entry 0 verbs must be a list of get, list, watch",
  );
});

test("grants the kinds of workflows all calls of steps, and the Lease of their watcher", () => {
  const workflow = defineWorkflow(
    "roll",
    { version: 1, kinds: [kind("widgets")] },
    async () => null,
  );
  const { cluster, leases } = requiredAccess(
    { controllers: [], workflows: [workflow] },
    { installation: "shop", leaseNamespace: "tools" },
  );
  expect(cluster.at(-1)).toEqual({
    apiGroups: [""],
    resources: ["widgets"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  });
  expect(leases[1]?.resourceNames).toEqual(["shop-redis.progress", "shop-workflow.waits"]);
});

test("grants scaling of workloads and eviction of Pods; other kinds get no subresource", () => {
  const workload = (resource: string) => ({ ...kind(resource), group: "apps" });
  const kinds = [
    kind("pods"),
    kind("configmaps"),
    ...["deployments", "replicasets", "statefulsets", "daemonsets"].map(workload),
    // Of another group.
    { ...kind("deployments"), group: "demo.konverge.dev" },
  ];
  const workflow = defineWorkflow("roll", { version: 1, kinds }, async () => null);
  const { cluster } = requiredAccess(
    { controllers: [], workflows: [workflow] },
    { installation: "shop", leaseNamespace: "tools" },
  );
  const through = cluster.filter(({ resources }) => resources.some((name) => name.includes("/")));
  expect(through).toEqual([
    { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
    {
      apiGroups: ["apps"],
      resources: ["deployments/scale", "replicasets/scale", "statefulsets/scale"],
      verbs: ["get", "patch"],
    },
  ]);
});
