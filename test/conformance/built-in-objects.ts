import type { JsonObject } from "@konverge/core";

/** A built-in kind with a minimal object and the changes that its cases make. */
export interface BuiltInKind {
  readonly kind: string;
  readonly apiVersion: string;
  readonly resource: string;
  readonly scope: "Cluster" | "Namespaced";
  /** Members besides apiVersion, kind and metadata. */
  readonly content: JsonObject;
  /** A merge patch of the object, which changes its defaults or its lists. */
  readonly change: JsonObject;
  /** The status to write; absent if the kind has no status subresource. */
  readonly status?: JsonObject;
  /** A status that fails validation. */
  readonly invalidStatus?: JsonObject;
  /** A body that fails validation, and a field that is invalid in it. */
  readonly invalid?: { readonly content: JsonObject; readonly field: string };
  /** Status of a PUT without a version; default 200. */
  readonly put?: number;
  /** Dotted paths that the server chooses. */
  readonly ignore?: readonly string[];
}

const labels = { app: "{o}" };
const selector = { matchLabels: labels };
const containers = [{ name: "main", image: "example.com/web:1" }];
const template = { metadata: { labels }, spec: { containers } };
const jobTemplate = { spec: { template: { spec: { containers, restartPolicy: "Never" } } } };
const subjects = [{ kind: "ServiceAccount", name: "worker", namespace: "{ns}" }];
const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] }];
const moreRules = [...rules, { apiGroups: ["apps"], resources: ["deployments"], verbs: ["*"] }];
const condition = { status: "True", reason: "Tested", message: "for the test" };
const at = "2026-01-02T03:04:05Z";

const APPS = { apiVersion: "apps/v1", scope: "Namespaced" } as const;
const BATCH = { apiVersion: "batch/v1", scope: "Namespaced" } as const;
const CORE = { apiVersion: "v1", scope: "Namespaced" } as const;
const NETWORKING = { apiVersion: "networking.k8s.io/v1", scope: "Namespaced" } as const;
const RBAC = { apiVersion: "rbac.authorization.k8s.io/v1" } as const;

/** The kinds that `konverge/kinds` exports and that have no cases of their own. */
export const BUILT_IN_KINDS: readonly BuiltInKind[] = [
  {
    ...CORE,
    kind: "Pod",
    resource: "pods",
    content: {
      spec: {
        containers: [
          {
            name: "main",
            image: "example.com/web",
            ports: [{ containerPort: 80 }],
            env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
            readinessProbe: { httpGet: { port: 80 } },
            resources: { limits: { cpu: "1" }, requests: { memory: "1Gi" } },
          },
        ],
        initContainers: [{ name: "first", image: "example.com/init:1" }],
        volumes: [
          { name: "a", emptyDir: {} },
          { name: "b", configMap: { name: "b" } },
          { name: "c", hostPath: { path: "/c" } },
        ],
      },
    },
    change: { metadata: { labels: { more: "yes" } } },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", ...condition, lastTransitionTime: at }],
    },
    invalid: { content: { spec: { containers: [] } }, field: "spec.containers" },
  },
  {
    ...CORE,
    kind: "Service",
    resource: "services",
    content: { spec: { selector: labels, ports: [{ name: "http", port: 80 }] } },
    change: {
      spec: {
        ports: [
          { name: "http", port: 80, targetPort: 8080 },
          { name: "more", port: 81 },
        ],
      },
    },
    status: { conditions: [{ type: "Ready", ...condition, lastTransitionTime: at }] },
    invalid: { content: { spec: { selector: labels } }, field: "spec.ports" },
    ignore: ["spec.clusterIP", "spec.clusterIPs"],
  },
  {
    ...CORE,
    kind: "PersistentVolumeClaim",
    resource: "persistentvolumeclaims",
    content: {
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    },
    change: { metadata: { labels: { more: "yes" } } },
    status: { phase: "Lost" },
    invalid: {
      content: { spec: { resources: { requests: { storage: "1Gi" } } } },
      field: "spec.accessModes",
    },
  },
  {
    apiVersion: "v1",
    kind: "PersistentVolume",
    resource: "persistentvolumes",
    scope: "Cluster",
    content: {
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        hostPath: { path: "/volume" },
      },
    },
    change: { spec: { persistentVolumeReclaimPolicy: "Delete" } },
    status: { phase: "Available" },
    invalid: {
      content: {
        spec: { accessModes: ["ReadWriteOnce"], hostPath: { path: "/volume" } },
      },
      field: "spec.capacity",
    },
  },
  {
    apiVersion: "v1",
    kind: "Node",
    resource: "nodes",
    scope: "Cluster",
    content: {},
    change: {
      spec: { unschedulable: true, taints: [{ key: "a", effect: "NoSchedule", timeAdded: at }] },
    },
    status: { conditions: [{ type: "Ready", ...condition }], capacity: { cpu: "4" } },
  },
  {
    ...APPS,
    kind: "ReplicaSet",
    resource: "replicasets",
    content: { spec: { selector, template } },
    change: { spec: { replicas: 3 } },
    status: { replicas: 2, readyReplicas: 1 },
    invalidStatus: { replicas: 1, readyReplicas: 2, availableReplicas: 3 },
    invalid: { content: { spec: { template } }, field: "spec.selector" },
  },
  {
    ...APPS,
    kind: "StatefulSet",
    resource: "statefulsets",
    content: {
      spec: {
        serviceName: "{o}",
        selector,
        template,
        volumeClaimTemplates: [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
          },
        ],
      },
    },
    change: { spec: { replicas: 3 } },
    status: { replicas: 2, readyReplicas: 1 },
    invalidStatus: { replicas: 1, readyReplicas: 2, availableReplicas: 3 },
    invalid: { content: { spec: { template } }, field: "spec.selector" },
  },
  {
    ...APPS,
    kind: "DaemonSet",
    resource: "daemonsets",
    content: { spec: { selector, template } },
    change: { spec: { minReadySeconds: 3 } },
    status: {
      currentNumberScheduled: 1,
      numberMisscheduled: 0,
      desiredNumberScheduled: 1,
      numberReady: 1,
    },
    invalid: { content: { spec: { template } }, field: "spec.selector" },
  },
  {
    ...BATCH,
    kind: "Job",
    resource: "jobs",
    put: 422,
    content: jobTemplate,
    change: { spec: { backoffLimit: 0, parallelism: 2 } },
    status: { active: 1, startTime: at, ready: 0 },
    invalid: {
      content: { spec: { template: { spec: { containers } } } },
      field: "spec.template.spec.restartPolicy",
    },
    // The server chooses labels and selector by the uid of the Job.
    ignore: ["spec.selector", "spec.template.metadata"],
  },
  {
    ...BATCH,
    kind: "CronJob",
    resource: "cronjobs",
    content: { spec: { schedule: "0 3 * * *", jobTemplate } },
    change: { spec: { suspend: true, successfulJobsHistoryLimit: 0 } },
    status: { lastScheduleTime: at },
    invalid: { content: { spec: { schedule: "", jobTemplate } }, field: "spec.schedule" },
  },
  {
    apiVersion: "autoscaling/v2",
    scope: "Namespaced",
    kind: "HorizontalPodAutoscaler",
    resource: "horizontalpodautoscalers",
    content: {
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
        maxReplicas: 5,
      },
    },
    change: {
      spec: {
        minReplicas: 2,
        metrics: [
          {
            type: "Resource",
            resource: { name: "memory", target: { type: "Utilization", averageUtilization: 70 } },
          },
        ],
        behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
      },
    },
    status: { currentReplicas: 1, desiredReplicas: 2 },
    invalid: {
      content: { spec: { scaleTargetRef: { kind: "Deployment", name: "web" }, maxReplicas: 0 } },
      field: "spec.maxReplicas",
    },
  },
  {
    ...NETWORKING,
    kind: "Ingress",
    resource: "ingresses",
    content: {
      spec: {
        rules: [
          {
            host: "web.example.com",
            http: {
              paths: [
                {
                  path: "/",
                  pathType: "Prefix",
                  backend: { service: { name: "web", port: { number: 80 } } },
                },
              ],
            },
          },
        ],
      },
    },
    change: { spec: { tls: [{ hosts: ["web.example.com"], secretName: "web" }] } },
    status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } },
    invalid: { content: { spec: {} }, field: "spec" },
  },
  {
    ...NETWORKING,
    kind: "NetworkPolicy",
    resource: "networkpolicies",
    content: { spec: { podSelector: {}, ingress: [{ ports: [{ port: 80 }] }] } },
    change: { spec: { policyTypes: ["Ingress", "Egress"] } },
  },
  {
    apiVersion: "policy/v1",
    scope: "Namespaced",
    kind: "PodDisruptionBudget",
    resource: "poddisruptionbudgets",
    put: 422,
    content: { spec: { minAvailable: 1, selector } },
    change: { spec: { minAvailable: "50%" } },
    status: { currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1 },
    invalid: {
      content: { spec: { minAvailable: 1, maxUnavailable: 1, selector } },
      field: "spec",
    },
  },
  {
    ...RBAC,
    kind: "Role",
    resource: "roles",
    scope: "Namespaced",
    content: { rules },
    change: { rules: moreRules },
    invalid: {
      content: { rules: [{ apiGroups: [""], resources: ["pods"] }] },
      field: "rules[0].verbs",
    },
  },
  {
    ...RBAC,
    kind: "ClusterRole",
    resource: "clusterroles",
    scope: "Cluster",
    content: { rules },
    change: { rules: moreRules },
    invalid: {
      content: { rules: [{ apiGroups: [""], resources: ["pods"] }] },
      field: "rules[0].verbs",
    },
  },
  {
    ...RBAC,
    kind: "RoleBinding",
    resource: "rolebindings",
    scope: "Namespaced",
    content: { subjects, roleRef: { kind: "ClusterRole", name: "view" } },
    change: { subjects: [...subjects, { kind: "User", name: "somebody" }] },
    invalid: { content: { subjects }, field: "roleRef.kind" },
  },
  {
    ...RBAC,
    kind: "ClusterRoleBinding",
    resource: "clusterrolebindings",
    scope: "Cluster",
    content: { subjects, roleRef: { kind: "ClusterRole", name: "view" } },
    change: { subjects: [...subjects, { kind: "User", name: "somebody" }] },
    invalid: { content: { subjects }, field: "roleRef.kind" },
  },
];
