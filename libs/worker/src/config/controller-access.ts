import { resourceId, type ResourceType } from "@konverge/core";
import type { OpenKind } from "@konverge/mutations";
import type { AnyWorkflow } from "@konverge/workflow";
import {
  ACCESS_VERBS,
  isByLabels,
  leaseName,
  namesIn,
  type AccessVerb,
  type Controller,
  type NamespaceSelection,
  type Resource,
} from "@konverge/engine";
import { openKindsOf, type MutationOptions } from "./mutation-options.ts";

/** A rule of a Role or ClusterRole. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly AccessVerb[];
}

/** The Kubernetes permissions of a worker. */
export interface RequiredAccess {
  /** For all namespaces, in a ClusterRole; with `namespaces`, for each of them, in a Role. */
  readonly cluster: readonly AccessRule[];
  readonly namespaces?: readonly string[] | undefined;
  /** For the namespace of the Leases, in a Role. */
  readonly leases: readonly AccessRule[];
}

const READS = ["get", "list", "watch"] as const;
/** The verbs of `create`, `mutate`, `apply` and `delete`, for children and for the objects of steps. Only `replace` needs more. */
const CHILD_WRITES = ["create", "patch", "delete"] as const;

/** Subresources that steps use to scale and evict, since `kinds` has no subresources. Whether other kinds can be scaled is unknown here. */
const STEP_SUBRESOURCES: Readonly<
  Record<string, { readonly subresource: string; readonly verbs: readonly AccessVerb[] }>
> = {
  "deployments.apps": { subresource: "scale", verbs: ["get", "patch"] },
  "replicasets.apps": { subresource: "scale", verbs: ["get", "patch"] },
  "statefulsets.apps": { subresource: "scale", verbs: ["get", "patch"] },
  pods: { subresource: "eviction", verbs: ["create"] },
};

/** Where a worker needs its permissions. */
export interface AccessScope {
  /** The setting `prefix`, which names the Leases. */
  readonly installation: string;
  /** By name: Roles in these namespaces are enough. Undefined: all namespaces. */
  readonly namespaces?: NamespaceSelection | undefined;
  readonly leaseNamespace: string;
}

/** Names the Lease of the watcher for waiting workflow runs. Controller names have no dot. */
export const WAITS_LEASE = "workflow.waits";

/** Names the Lease with the progress of the data in Redis. */
export const RESTORE_LEASE = "redis.progress";

/**
 * Returns the minimum permissions of a worker with these controllers, workflows and mutations: the calls of Konverge for `for`,
 * `owns` and `watches`, the `permissions` of the controllers, all calls of steps for the `kinds` of workflows, and the changes of
 * open kinds. With names of namespaces,
 * nothing outside of them and of the namespace of the Leases is needed.
 */
export function requiredAccess(
  {
    controllers,
    workflows,
    mutations,
  }: {
    readonly controllers: readonly Controller[];
    readonly workflows: readonly AnyWorkflow[];
    readonly mutations?: MutationOptions;
  },
  { installation, namespaces: selected, leaseNamespace }: AccessScope,
): RequiredAccess {
  const namespaces = namesIn(selected);
  const grants = new Map<string, Set<AccessVerb>>();
  const grant = (type: ResourceType, verbs: readonly AccessVerb[], subresource?: string) => {
    if (verbs.length === 0) return;
    const resource = subresource === undefined ? type.resource : `${type.resource}/${subresource}`;
    const id = `${type.group}\n${resource}`;
    grants.set(id, new Set([...(grants.get(id) ?? []), ...verbs]));
  };
  for (const controller of controllers) grantController(controller, grant);
  for (const type of workflows.flatMap(({ kinds }) => kinds)) {
    grant(type, [...READS, ...CHILD_WRITES]);
    const through = STEP_SUBRESOURCES[resourceId(type)];
    if (through !== undefined) grant(type, through.verbs, through.subresource);
  }
  for (const kind of openKindsOf(mutations)) grantMutations(kind, grant);
  // Identifies the cluster, and probes whether the API server is back.
  const identity = (namespace: string): AccessRule => ({
    apiGroups: [""],
    resources: ["namespaces"],
    resourceNames: [namespace],
    verbs: ["get"],
  });
  const isNamespaced = namespaces !== undefined;
  return {
    namespaces,
    cluster: [
      ...(isNamespaced ? [] : [identity("kube-system")]),
      // Reports loops, contention and the events of handlers, in the namespace of the object.
      { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
      // Shown on the pages of objects.
      { apiGroups: [""], resources: ["events"], verbs: ["list"] },
      ...(isNamespaced ? [] : crdRules(controllers)),
      ...(followsNamespaces(controllers, selected) ? [FOLLOW_NAMESPACES] : []),
      ...toRules(grants),
    ],
    // Elects the leaders. A create cannot be restricted to a name, since the name is not in its URL.
    leases: [
      ...(isNamespaced ? [identity(leaseNamespace)] : []),
      { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        resourceNames: [
          ...controllers.map(({ name }) => name),
          ...(workflows.length === 0 ? [] : [WAITS_LEASE]),
          RESTORE_LEASE,
        ]
          .map((name) => leaseName(installation, name))
          .toSorted(),
        verbs: ["get", "update"],
      },
    ],
  };
}

/** `get` decides about a namespace that a worker has not seen yet. */
const FOLLOW_NAMESPACES: AccessRule = {
  apiGroups: [""],
  resources: ["namespaces"],
  verbs: [...READS],
};

function followsNamespaces(
  controllers: readonly Controller[],
  selected: NamespaceSelection | undefined,
): boolean {
  const sources = controllers.flatMap((controller) => controller.sources);
  return isByLabels(selected) || sources.some(({ namespaces }) => isByLabels(namespaces));
}

type Grant = (type: ResourceType, verbs: readonly AccessVerb[], subresource?: string) => void;

function grantController(controller: Controller, grant: Grant): void {
  const { for: own, sources, permissions } = controller;
  const owns = sources.filter(({ option }) => option === "owns");
  const explicit = new Set(
    permissions
      .filter(({ subresource }) => subresource === undefined)
      .map(({ type }) => resourceId(type)),
  );
  // Explicit permissions for a kind replace the default writes.
  const unlessExplicit = (type: ResourceType, verbs: readonly AccessVerb[]) =>
    explicit.has(resourceId(type)) ? [] : verbs;
  grant(own, unlessExplicit(own, ["patch"]));
  // The finalizer is added to the object and removed from it.
  if (controller.cleanup !== undefined || controller.abandonsCleanup) grant(own, ["patch"]);
  if (mayHaveStatus(own)) grant(own, ["patch"], "status");
  // Owner references block the owner's deletion, which OwnerReferencesPermissionEnforcement restricts.
  if (owns.length > 0) grant(own, ["update"], "finalizers");
  for (const { type } of sources) grant(type, READS);
  for (const { type } of owns) grant(type, unlessExplicit(type, CHILD_WRITES));
  for (const { type, verbs, subresource } of permissions) grant(type, verbs, subresource);
}

function grantMutations(kind: OpenKind, grant: Grant): void {
  grant(kind, ["get", "create", "patch"]);
  const scale = STEP_SUBRESOURCES[resourceId(kind)];
  const opens = (part: string) =>
    kind.paths === undefined || kind.paths.some((path) => path.startsWith(part));
  if (scale?.subresource === "scale" && opens("/spec")) grant(kind, scale.verbs, "scale");
  if (opens("/status")) grant(kind, ["get", "patch"], "status");
}

/** Exact for kinds of `defineResource`; other kinds may have a status. */
function mayHaveStatus(type: ResourceType): boolean {
  return !isResource(type) || type.hasStatus;
}

function isResource(type: ResourceType): type is Resource {
  return "crd" in type;
}

/** To report CRDs that differ from their definition. */
function crdRules(controllers: readonly Controller[]): AccessRule[] {
  const types = controllers.flatMap(({ sources }) => sources.map(({ type }) => type));
  const names = new Set(types.filter(isResource).map((type) => type.crd().metadata.name));
  if (names.size === 0) return [];
  return [
    {
      apiGroups: ["apiextensions.k8s.io"],
      resources: ["customresourcedefinitions"],
      resourceNames: [...names].toSorted(),
      verbs: ["get"],
    },
  ];
}

/** Combines all resources of a group with the same verbs in one rule. */
function toRules(grants: ReadonlyMap<string, ReadonlySet<AccessVerb>>): AccessRule[] {
  const rules = new Map<string, { group: string; verbs: AccessVerb[]; resources: string[] }>();
  for (const [id, granted] of [...grants].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const [group = "", resource = ""] = id.split("\n");
    const verbs = ACCESS_VERBS.filter((verb) => granted.has(verb));
    const key = `${group} ${verbs.join()}`;
    const rule = rules.get(key) ?? { group, verbs, resources: [] };
    rule.resources.push(resource);
    rules.set(key, rule);
  }
  return [...rules.values()].map(({ group, verbs, resources }) => ({
    apiGroups: [group],
    resources,
    verbs,
  }));
}
