import type { Settings } from "@konverge/contracts";
import type { Config } from "@konverge/worker";
import type { Installation } from "./manifest.ts";

export interface ManifestsOptions {
  readonly config: Config;
  /** The settings of the file, without the environment of the Pods. */
  readonly settings: Settings;
  readonly installation: Installation;
  /** Path of the configuration file in the image. */
  readonly configInImage: string;
  readonly replicas: number;
  /** The namespaces that the workers may access, with Roles only. Default: those of the configuration. */
  readonly namespaces?: readonly string[] | undefined;
  /** Number of watch-only Pods; the other workers then only run handlers. */
  readonly watchers?: number | undefined;
  /** Name of the Secret with the Redis URL in its key `url`. */
  readonly redisSecret: string;
  /** Name of the Secret with an API token in its key `token`. Without it, the API is omitted. */
  readonly apiSecret?: string | undefined;
}
