import { clusterOf } from "@konverge/contracts";
import { invalidConfig, KonvergeError } from "@konverge/core";
import { findScopeIssues, namesIn, type NamespaceSelection } from "@konverge/engine";
import {
  isClusterProvider,
  namespacesOf,
  openKindsOf,
  optionsOfCluster,
  requiredAccess,
  type RequiredAccess,
} from "@konverge/worker";
import type { ManifestsOptions } from "./manifests-options.ts";

/**
 * Returns the permissions of the workers of an installation.
 * @throws KonvergeError `invalid_config` for cluster-scoped kinds in an installation with Roles only, and for sources outside of
 *   its namespaces
 */
export function installedAccess(options: ManifestsOptions): RequiredAccess {
  const { config, settings, installation } = options;
  const namespaces = installedNamespaces(options);
  const issues = findScopeIssues(config.controllers, namespaces);
  if (issues.length > 0) throw invalidConfig(issues);
  if (namesIn(namespaces) !== undefined) {
    const types = [
      ...config.controllers.flatMap(({ sources, permissions }) =>
        [...sources, ...permissions].map(({ type }) => type),
      ),
      ...config.workflows.flatMap(({ kinds }) => kinds),
      ...openKindsOf(config.mutations),
    ];
    const kind = types.find(({ scope }) => scope === "Cluster")?.kind;
    if (kind !== undefined) {
      throw new KonvergeError(
        "invalid_config",
        `namespaces: ${kind} is cluster-scoped, and Roles cannot grant access to it; omit the namespaces, or the kind`,
      );
    }
  }
  return requiredAccess(config, {
    installation: settings.prefix,
    namespaces,
    leaseNamespace: installation.namespace,
  });
}

/** The namespace of the kubeconfigs, if a provider reads them from Secrets. */
export function secretsNamespaceOf({
  config: { clusters },
}: Pick<ManifestsOptions, "config">): string | undefined {
  return isClusterProvider(clusters) ? clusters.secretsNamespace : undefined;
}

/** The namespaces that the workers watch: of the command line, or else of the configuration. Undefined: all. */
export function installedNamespaces({
  config,
  settings,
  namespaces,
}: ManifestsOptions): NamespaceSelection | undefined {
  return (
    namespaces ?? namespacesOf(settings, optionsOfCluster(config.clusters, clusterOf(settings)))
  );
}
