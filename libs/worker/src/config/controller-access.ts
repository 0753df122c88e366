import { resourceId, type ResourceType } from "@konverge/core";
import type { AnyWorkflow } from "@konverge/workflow";
import {
  ACCESS_VERBS,
  leaseName,
  type AccessVerb,
  type Controller,
  type Resource,
} from "@konverge/engine";

/** A rule of a Role or ClusterRole, ready to be written into one. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly AccessVerb[];
}

/** All that a worker may do with its API server. */
export interface RequiredAccess {
  /** In every namespace, for a ClusterRole. */
  readonly cluster: readonly AccessRule[];
  /** In the namespace of the Leases only, for a Role. */
  readonly leases: readonly AccessRule[];
}

const READS = ["get", "list", "watch"] as const;
/** What `kube` offers for children, and `k` for the objects of steps: `create`, `mutate` and `apply`, `delete`. Only `replace` needs more. */
const CHILD_WRITES = ["create", "patch", "delete"] as const;

/** Through which steps scale and evict: nobody names a subresource among `kinds`. Of other kinds only the cluster knows whether they can be scaled. */
const STEP_SUBRESOURCES: Readonly<
  Record<string, { readonly subresource: string; readonly verbs: readonly AccessVerb[] }>
> = {
  "deployments.apps": { subresource: "scale", verbs: ["get", "patch"] },
  "replicasets.apps": { subresource: "scale", verbs: ["get", "patch"] },
  "statefulsets.apps": { subresource: "scale", verbs: ["get", "patch"] },
  pods: { subresource: "eviction", verbs: ["create"] },
};

/** Whose Lease elects who watches what the runs of workflows wait for. No controller's name has a dot. */
export const WAITS_LEASE = "workflow.waits";

/**
 * The least that a worker with these controllers and workflows needs: what our code calls for `for`, `owns` and `watches`, what the
 * controllers say under `permissions`, and for the `kinds` of workflows all that steps do with objects. `installation` is the setting
 * `prefix`, which names the Leases.
 */
export function requiredAccess(
  {
    controllers,
    workflows,
  }: { readonly controllers: readonly Controller[]; readonly workflows: readonly AnyWorkflow[] },
  installation: string,
): RequiredAccess {
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
  return {
    cluster: [
      // Tells clusters apart, and is what looks whether the API server is back.
      {
        apiGroups: [""],
        resources: ["namespaces"],
        resourceNames: ["kube-system"],
        verbs: ["get"],
      },
      // Tells people about loops and fights, in the namespace of the object.
      { apiGroups: [""], resources: ["events"], verbs: ["create"] },
      ...crdRules(controllers),
      ...toRules(grants),
    ],
    // Elects who watches. A create cannot be bound to a name, since the name is not in its URL.
    leases: [
      { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        resourceNames: [
          ...controllers.map(({ name }) => name),
          ...(workflows.length === 0 ? [] : [WAITS_LEASE]),
        ]
          .map((name) => leaseName(installation, name))
          .toSorted(),
        verbs: ["get", "update"],
      },
    ],
  };
}

type Grant = (type: ResourceType, verbs: readonly AccessVerb[], subresource?: string) => void;

function grantController(controller: Controller, grant: Grant): void {
  const { for: own, owns, watches, permissions } = controller;
  const said = new Set(
    permissions
      .filter(({ subresource }) => subresource === undefined)
      .map(({ type }) => resourceId(type)),
  );
  // Who says the writes of a kind gets those in place of the usual ones.
  const unlessSaid = (type: ResourceType, verbs: readonly AccessVerb[]) =>
    said.has(resourceId(type)) ? [] : verbs;
  grant(own, [...READS, ...unlessSaid(own, ["patch"])]);
  // The finalizer is put into the object and taken out of it.
  if (controller.cleanup !== undefined || controller.abandonsCleanup) grant(own, ["patch"]);
  if (mayHaveStatus(own)) grant(own, ["patch"], "status");
  // Owner references block the owner's deletion, which OwnerReferencesPermissionEnforcement wants to be allowed.
  if (owns.length > 0) grant(own, ["update"], "finalizers");
  for (const type of owns) grant(type, [...READS, ...unlessSaid(type, CHILD_WRITES)]);
  for (const { type } of watches) grant(type, READS);
  for (const { type, verbs, subresource } of permissions) grant(type, verbs, subresource);
}

/** Known of kinds made by `defineResource`; of others the cluster alone knows. */
function mayHaveStatus(type: ResourceType): boolean {
  return !isResource(type) || type.hasStatus;
}

function isResource(type: ResourceType): type is Resource {
  return "crd" in type;
}

/** A worker tells when the CRD of a kind differs from its definition. */
function crdRules(controllers: readonly Controller[]): AccessRule[] {
  const types = controllers.flatMap(({ for: own, owns, watches }) => [
    own,
    ...owns,
    ...watches.map(({ type }) => type),
  ]);
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

/** One rule for all resources of a group with the same verbs. */
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
