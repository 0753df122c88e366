import type {
  CoreV1Event,
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1ConfigMap,
  V1CronJob,
  V1CustomResourceDefinition,
  V1DaemonSet,
  V1Deployment,
  V1Ingress,
  V1Job,
  V1Lease,
  V1Namespace,
  V1NetworkPolicy,
  V1Node,
  V1ObjectMeta,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1ReplicaSet,
  V1Role,
  V1RoleBinding,
  V1Secret,
  V1Service,
  V1ServiceAccount,
  V1StatefulSet,
  V2HorizontalPodAutoscaler,
} from "@kubernetes/client-node";
import type { ApiObject, ResourceType } from "@konverge/core";

/**
 * The JSON form of a type of `@kubernetes/client-node`: times are text, and names reserved in JavaScript have no
 * underscore. Konverge keeps the values as the API server sent them.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? {
          -readonly [Field in keyof T as Field extends `_${infer Name}` ? Name : Field]: Wire<
            T[Field]
          >;
        }
      : T;

/** An object of a built-in kind. */
export type BuiltIn<T> = ApiObject & Omit<Wire<T>, keyof ApiObject>;

declare const model: unique symbol;

/** A built-in kind, with the class of `@kubernetes/client-node` for its objects. The class exists at compile time only. */
export interface BuiltInKind<Model> extends ResourceType<BuiltIn<Model>> {
  readonly [model]: Model;
}

/**
 * A value of a class of `@kubernetes/client-node`, without fields of other classes. Its metadata has the type of the class: other
 * objects must have a name, which only the draft and the manifest of a kind require.
 */
export type ModelValue<Given, Model> = "metadata" extends keyof Given
  ? [keyof Given, Given] extends [keyof Model, { readonly metadata?: infer Meta }]
    ? V1ObjectMeta extends NonNullable<Meta>
      ? Given
      : never
    : never
  : never;

function kind<T>(
  apiVersion: readonly [group: string, version: string],
  name: string,
  resource: string,
  scope: ResourceType["scope"] = "Namespaced",
): BuiltInKind<T> {
  const [group, version] = apiVersion;
  const type: ResourceType<BuiltIn<T>> = { group, version, kind: name, resource, scope };
  return type as BuiltInKind<T>;
}

const CORE = ["", "v1"] as const;
const APPS = ["apps", "v1"] as const;
const BATCH = ["batch", "v1"] as const;
const RBAC = ["rbac.authorization.k8s.io", "v1"] as const;
const NETWORKING = ["networking.k8s.io", "v1"] as const;

export const ConfigMap: BuiltInKind<V1ConfigMap> = kind(CORE, "ConfigMap", "configmaps");
export const Event: BuiltInKind<CoreV1Event> = kind(CORE, "Event", "events");
export const Namespace: BuiltInKind<V1Namespace> = kind(CORE, "Namespace", "namespaces", "Cluster");
export const Node: BuiltInKind<V1Node> = kind(CORE, "Node", "nodes", "Cluster");
export const PersistentVolume: BuiltInKind<V1PersistentVolume> = kind(
  CORE,
  "PersistentVolume",
  "persistentvolumes",
  "Cluster",
);
export const PersistentVolumeClaim: BuiltInKind<V1PersistentVolumeClaim> = kind(
  CORE,
  "PersistentVolumeClaim",
  "persistentvolumeclaims",
);
export const Pod: BuiltInKind<V1Pod> = kind(CORE, "Pod", "pods");
export const Secret: BuiltInKind<V1Secret> = kind(CORE, "Secret", "secrets");
export const Service: BuiltInKind<V1Service> = kind(CORE, "Service", "services");
export const ServiceAccount: BuiltInKind<V1ServiceAccount> = kind(
  CORE,
  "ServiceAccount",
  "serviceaccounts",
);
export const DaemonSet: BuiltInKind<V1DaemonSet> = kind(APPS, "DaemonSet", "daemonsets");
export const Deployment: BuiltInKind<V1Deployment> = kind(APPS, "Deployment", "deployments");
export const ReplicaSet: BuiltInKind<V1ReplicaSet> = kind(APPS, "ReplicaSet", "replicasets");
export const StatefulSet: BuiltInKind<V1StatefulSet> = kind(APPS, "StatefulSet", "statefulsets");
export const CustomResourceDefinition: BuiltInKind<V1CustomResourceDefinition> = kind(
  ["apiextensions.k8s.io", "v1"],
  "CustomResourceDefinition",
  "customresourcedefinitions",
  "Cluster",
);
export const HorizontalPodAutoscaler: BuiltInKind<V2HorizontalPodAutoscaler> = kind(
  ["autoscaling", "v2"],
  "HorizontalPodAutoscaler",
  "horizontalpodautoscalers",
);
export const CronJob: BuiltInKind<V1CronJob> = kind(BATCH, "CronJob", "cronjobs");
export const Job: BuiltInKind<V1Job> = kind(BATCH, "Job", "jobs");
export const Lease: BuiltInKind<V1Lease> = kind(["coordination.k8s.io", "v1"], "Lease", "leases");
export const Ingress: BuiltInKind<V1Ingress> = kind(NETWORKING, "Ingress", "ingresses");
export const NetworkPolicy: BuiltInKind<V1NetworkPolicy> = kind(
  NETWORKING,
  "NetworkPolicy",
  "networkpolicies",
);
export const PodDisruptionBudget: BuiltInKind<V1PodDisruptionBudget> = kind(
  ["policy", "v1"],
  "PodDisruptionBudget",
  "poddisruptionbudgets",
);
export const ClusterRole: BuiltInKind<V1ClusterRole> = kind(
  RBAC,
  "ClusterRole",
  "clusterroles",
  "Cluster",
);
export const ClusterRoleBinding: BuiltInKind<V1ClusterRoleBinding> = kind(
  RBAC,
  "ClusterRoleBinding",
  "clusterrolebindings",
  "Cluster",
);
export const Role: BuiltInKind<V1Role> = kind(RBAC, "Role", "roles");
export const RoleBinding: BuiltInKind<V1RoleBinding> = kind(RBAC, "RoleBinding", "rolebindings");
