import { clusterOf } from "@konverge/contracts";
import { defined } from "@konverge/core";
import { servedClusters } from "@konverge/worker";
import { crdsOf } from "../config/crds-of.ts";
import { installedAccess, secretsNamespaceOf } from "./installed-access.ts";
import type { ManifestsOptions } from "./manifests-options.ts";
import { signInOf, signInValues } from "./sign-in-manifests.ts";

/** Returns the values with which the chart in infra/helm/konverge creates the same objects. */
export function makeChartValues(options: ManifestsOptions): object {
  const { config, settings, installation, watchers, apiSecret } = options;
  const { cluster, leases, namespaces } = installedAccess(options);
  const secretsNamespace = secretsNamespaceOf(options);
  const signIn = signInOf(settings);
  const api = defined({
    kubeAudiences: settings.kubeAudiences,
    oidc: signIn && signInValues(signIn),
  });
  return {
    image: installation.image,
    config: options.configInImage,
    drainGraceSeconds: Math.ceil(settings.shutdownGrace / 1_000),
    prefix: settings.prefix,
    cluster: clusterOf(settings),
    clusters: servedClusters(config, settings),
    runRetention: `${settings.runRetention}ms`,
    redis: { existingSecret: options.redisSecret },
    workers: { replicas: options.replicas },
    ...(watchers === undefined ? {} : { watchers: { replicas: watchers } }),
    ...(apiSecret === undefined
      ? {}
      : { api: { enabled: true, existingSecret: apiSecret, ...api } }),
    ...defined({ namespaces }),
    rbac: { clusterRules: cluster, leaseRules: leases, ...defined({ secretsNamespace }) },
    crds: crdsOf(config),
  };
}
