import type { Settings } from "@konverge/contracts";
import { requiredAccess, type Config } from "@konverge/worker";
import { crdsOf } from "../config/crds-of.ts";
import { accessManifests } from "./access-manifests.ts";
import { apiManifests } from "./api-manifests.ts";
import { labelsOf, type Installation, type Manifest } from "./manifest.ts";
import { workerManifests } from "./worker-manifests.ts";

export interface ManifestsOptions {
  readonly config: Config;
  /** As the file says; what the pods' environment will say is not known here. */
  readonly settings: Settings;
  readonly installation: Installation;
  /** Path of the configuration file inside of the image. */
  readonly configInImage: string;
  readonly replicas: number;
  /** With it, only these stand for election, and the other workers do nothing but work. */
  readonly watchers?: number | undefined;
  /** Name of the Secret whose key `url` is the URL of Redis. */
  readonly redisSecret: string;
  /** Name of the Secret whose key `token` is the API's token; without it there is no API. */
  readonly apiSecret?: string | undefined;
}

/** Everything that a cluster needs to run a configuration, in the order in which it is to be applied. */
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

/** Enforces Pod Security's strictest level, which the pods keep. */
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
