import type { AccessRule, RequiredAccess } from "@konverge/worker";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";

const RBAC = "rbac.authorization.k8s.io";

/**
 * Returns the ServiceAccount of the workers, a ClusterRole for the kinds, or a Role in each of the namespaces, and a Role for the
 * Leases.
 */
export function accessManifests(
  installation: Installation,
  { cluster, leases, namespaces }: RequiredAccess,
): Manifest[] {
  const { name, namespace } = installation;
  const labels = labelsOf(installation);
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  // The roles for the kinds are outside of the workers' namespace, so the name includes it.
  const metadata = { name: `${namespace}-${name}`, labels };
  const roles =
    namespaces === undefined
      ? bind("ClusterRole", metadata, { rules: cluster, subjects })
      : namespaces.flatMap((each) =>
          bind("Role", { ...metadata, namespace: each }, { rules: cluster, subjects }),
        );
  return [
    serviceAccount(installation, name),
    ...roles,
    ...bind("Role", { name, namespace, labels }, { rules: leases, subjects }),
  ];
}

/** Returns a role and its binding, of the same name. */
function bind(
  kind: "Role" | "ClusterRole",
  metadata: Manifest["metadata"],
  {
    rules,
    subjects,
  }: { readonly rules: readonly AccessRule[]; readonly subjects: readonly object[] },
): Manifest[] {
  const apiVersion = `${RBAC}/v1`;
  return [
    { apiVersion, kind, metadata, rules },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: RBAC, kind, name: metadata.name },
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
