import type { Settings } from "@konverge/contracts";
import { requiredAccess, type Config } from "@konverge/worker";
import { crdsOf } from "../config/crds-of.ts";
import { accessManifests } from "./access-manifests.ts";
import { apiManifests } from "./api-manifests.ts";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";
import { workerManifests } from "./worker-manifests.ts";

export interface ManifestsOptions {
  readonly config: Config;
  /** The settings of the file, without the environment of the Pods. */
  readonly settings: Settings;
  readonly installation: Installation;
  /** Path of the configuration file in the image. */
  readonly configInImage: string;
  readonly replicas: number;
  /** Number of watch-only Pods; the other workers then only run handlers. */
  readonly watchers?: number | undefined;
  /** Name of the Secret with the Redis URL in its key `url`. */
  readonly redisSecret: string;
  /** Name of the Secret with an API token in its key `token`. Without it, the API is omitted. */
  readonly apiSecret?: string | undefined;
}

/** Returns all objects that a cluster needs to run a configuration, in the order to apply them. */
export function makeManifests(options: ManifestsOptions): Manifest[] {
  const { config, settings, installation, replicas, watchers, apiSecret } = options;
  const redis = { setting: "KONVERGE_REDIS_URL", secret: options.redisSecret, key: "url" };
  const workers = { installation, settings, config: options.configInImage, redis };
  return [
    namespaceOf(installation),
    ...crdsOf(config),
    ...accessManifests(installation, requiredAccess(config, settings.prefix)),
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
