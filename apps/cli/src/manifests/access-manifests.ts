import type { RequiredAccess } from "@konverge/worker";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";

const RBAC = "rbac.authorization.k8s.io";

/** Returns the ServiceAccount of the workers, a ClusterRole for the kinds and a Role for the Leases. */
export function accessManifests(
  installation: Installation,
  { cluster, leases }: RequiredAccess,
): Manifest[] {
  const { name, namespace } = installation;
  const labels = labelsOf(installation);
  // ClusterRoles have no namespace, so the name includes it.
  const clusterName = `${namespace}-${name}`;
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  return [
    serviceAccount(installation, name),
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata: { name: clusterName, labels },
      rules: cluster,
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: clusterName, labels },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: clusterName },
      subjects,
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "Role",
      metadata: { name, namespace, labels },
      rules: leases,
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "RoleBinding",
      metadata: { name, namespace, labels },
      roleRef: { apiGroup: RBAC, kind: "Role", name },
      subjects,
    },
  ];
}

export function serviceAccount(installation: Installation, name: string): Manifest {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name, namespace: installation.namespace, labels: labelsOf(installation) },
    // Pods that need the token mount it themselves.
    automountServiceAccountToken: false,
  };
}
