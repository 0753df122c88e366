import { namesIn } from "@konverge/engine";
import { crdsOf } from "../config/crds-of.ts";
import { accessManifests } from "./access-manifests.ts";
import { apiManifests } from "./api-manifests.ts";
import { installedAccess, installedNamespaces, secretsNamespaceOf } from "./installed-access.ts";
import type { ManifestsOptions } from "./manifests-options.ts";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";
import { workerManifests } from "./worker-manifests.ts";

/** Returns all objects that a cluster needs to run a configuration, in the order to apply them. */
export function makeManifests(options: ManifestsOptions): Manifest[] {
  const { config, settings, installation, replicas, watchers, apiSecret } = options;
  const redis = { setting: "KONVERGE_REDIS_URL", secret: options.redisSecret, key: "url" };
  // Pods read a label selector from the configuration.
  const namespaces = namesIn(installedNamespaces(options));
  const workers = { installation, settings, config: options.configInImage, redis, namespaces };
  return [
    namespaceOf(installation),
    ...crdsOf(config),
    ...accessManifests(installation, installedAccess(options), secretsNamespaceOf(options)),
    ...(watchers === undefined
      ? workerManifests({ ...workers, component: "worker", role: "all", replicas })
      : [
          ...workerManifests({
            ...workers,
            component: "watcher",
            role: "watch",
            replicas: watchers,
          }),
          ...workerManifests({ ...workers, component: "worker", role: "work", replicas }),
        ]),
    ...(apiSecret === undefined
      ? []
      : apiManifests(installation, {
          settings,
          redis,
          token: { setting: "KONVERGE_TOKEN", secret: apiSecret, key: "token" },
        })),
  ];
}

/** Enforces the Pod Security level `restricted`, which the Pods meet. */
function namespaceOf(installation: Installation): Manifest {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: installation.namespace,
      labels: { ...labelsOf(installation), "pod-security.kubernetes.io/enforce": "restricted" },
    },
  };
}
