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

function kind<T>(
  apiVersion: readonly [group: string, version: string],
  name: string,
  resource: string,
  scope: ResourceType["scope"] = "Namespaced",
): ResourceType<BuiltIn<T>> {
  const [group, version] = apiVersion;
  return { group, version, kind: name, resource, scope };
}

const CORE = ["", "v1"] as const;
const APPS = ["apps", "v1"] as const;
const BATCH = ["batch", "v1"] as const;
const RBAC = ["rbac.authorization.k8s.io", "v1"] as const;
const NETWORKING = ["networking.k8s.io", "v1"] as const;

export const ConfigMap: ResourceType<BuiltIn<V1ConfigMap>> = kind(CORE, "ConfigMap", "configmaps");
export const Event: ResourceType<BuiltIn<CoreV1Event>> = kind(CORE, "Event", "events");
export const Namespace: ResourceType<BuiltIn<V1Namespace>> = kind(
  CORE,
  "Namespace",
  "namespaces",
  "Cluster",
);
export const Node: ResourceType<BuiltIn<V1Node>> = kind(CORE, "Node", "nodes", "Cluster");
export const PersistentVolume: ResourceType<BuiltIn<V1PersistentVolume>> = kind(
  CORE,
  "PersistentVolume",
  "persistentvolumes",
  "Cluster",
);
export const PersistentVolumeClaim: ResourceType<BuiltIn<V1PersistentVolumeClaim>> = kind(
  CORE,
  "PersistentVolumeClaim",
  "persistentvolumeclaims",
);
export const Pod: ResourceType<BuiltIn<V1Pod>> = kind(CORE, "Pod", "pods");
export const Secret: ResourceType<BuiltIn<V1Secret>> = kind(CORE, "Secret", "secrets");
export const Service: ResourceType<BuiltIn<V1Service>> = kind(CORE, "Service", "services");
export const ServiceAccount: ResourceType<BuiltIn<V1ServiceAccount>> = kind(
  CORE,
  "ServiceAccount",
  "serviceaccounts",
);
export const DaemonSet: ResourceType<BuiltIn<V1DaemonSet>> = kind(APPS, "DaemonSet", "daemonsets");
export const Deployment: ResourceType<BuiltIn<V1Deployment>> = kind(
  APPS,
  "Deployment",
  "deployments",
);
export const ReplicaSet: ResourceType<BuiltIn<V1ReplicaSet>> = kind(
  APPS,
  "ReplicaSet",
  "replicasets",
);
export const StatefulSet: ResourceType<BuiltIn<V1StatefulSet>> = kind(
  APPS,
  "StatefulSet",
  "statefulsets",
);
export const CustomResourceDefinition: ResourceType<BuiltIn<V1CustomResourceDefinition>> = kind(
  ["apiextensions.k8s.io", "v1"],
  "CustomResourceDefinition",
  "customresourcedefinitions",
  "Cluster",
);
export const HorizontalPodAutoscaler: ResourceType<BuiltIn<V2HorizontalPodAutoscaler>> = kind(
  ["autoscaling", "v2"],
  "HorizontalPodAutoscaler",
  "horizontalpodautoscalers",
);
export const CronJob: ResourceType<BuiltIn<V1CronJob>> = kind(BATCH, "CronJob", "cronjobs");
export const Job: ResourceType<BuiltIn<V1Job>> = kind(BATCH, "Job", "jobs");
export const Lease: ResourceType<BuiltIn<V1Lease>> = kind(
  ["coordination.k8s.io", "v1"],
  "Lease",
  "leases",
);
export const Ingress: ResourceType<BuiltIn<V1Ingress>> = kind(NETWORKING, "Ingress", "ingresses");
export const NetworkPolicy: ResourceType<BuiltIn<V1NetworkPolicy>> = kind(
  NETWORKING,
  "NetworkPolicy",
  "networkpolicies",
);
export const PodDisruptionBudget: ResourceType<BuiltIn<V1PodDisruptionBudget>> = kind(
  ["policy", "v1"],
  "PodDisruptionBudget",
  "poddisruptionbudgets",
);
export const ClusterRole: ResourceType<BuiltIn<V1ClusterRole>> = kind(
  RBAC,
  "ClusterRole",
  "clusterroles",
  "Cluster",
);
export const ClusterRoleBinding: ResourceType<BuiltIn<V1ClusterRoleBinding>> = kind(
  RBAC,
  "ClusterRoleBinding",
  "clusterrolebindings",
  "Cluster",
);
export const Role: ResourceType<BuiltIn<V1Role>> = kind(RBAC, "Role", "roles");
export const RoleBinding: ResourceType<BuiltIn<V1RoleBinding>> = kind(
  RBAC,
  "RoleBinding",
  "rolebindings",
);
