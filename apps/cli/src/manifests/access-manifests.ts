import type { AccessRule, RequiredAccess } from "@konverge/worker";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";

/** Roles cannot select by labels, so they grant all Secrets of the namespace. */
const KUBECONFIGS: readonly AccessRule[] = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] },
];

const RBAC = "rbac.authorization.k8s.io";

/**
 * Returns the ServiceAccount of the workers, a ClusterRole for the kinds, or a Role in each of the namespaces, and a Role for the
 * Leases. With a namespace of kubeconfigs, also a Role for its Secrets.
 */
export function accessManifests(
  installation: Installation,
  { cluster, leases, namespaces }: RequiredAccess,
  secretsNamespace?: string,
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
    ...(secretsNamespace === undefined
      ? []
      : bind(
          "Role",
          { ...metadata, name: `${metadata.name}-clusters`, namespace: secretsNamespace },
          { rules: KUBECONFIGS, subjects },
        )),
  ];
}

/** Returns a role and its binding, of the same name. */
export function bind(
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
