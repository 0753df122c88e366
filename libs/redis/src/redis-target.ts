import {
  defined,
  KonvergeError,
  parseRedisUrl,
  type RedisAddress,
  type RedisUrl,
} from "@konverge/core";
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from "ioredis";
import { forgetArguments } from "./forget-arguments.ts";
import { SteadySentinelConnector } from "./steady-sentinel-connector.ts";

/**
 * Where Redis is: a URL (docs/configuration.md has the forms), the nodes of a Redis Cluster, or ioredis options for all that
 * a URL cannot say (TLS files, a password of the Sentinels).
 */
export type RedisTarget =
  | { readonly url: string }
  | { readonly nodes: readonly RedisAddress[]; readonly options?: ClusterOptions }
  | RedisOptions;

export type RedisClient = Redis | Cluster;

/** How a connection behaves, on one server and on the nodes of a Redis Cluster. */
export interface Manner {
  readonly single: RedisOptions;
  readonly cluster: ClusterOptions;
}

const MAX_RECONNECT_MS = 1_000;
const SENTINEL_TIMEOUT_MS = 2_000;
const reconnectAfterMs = (times: number) => Math.min(50 * times, MAX_RECONNECT_MS);

/** Opens in the background. @throws KonvergeError `invalid_config` for a URL that cannot be read */
export function connect(target: RedisTarget, manner: Manner): RedisClient {
  return discreet(open(target, manner));
}

/** To be called before others listen: what a connection says of a failed handshake holds the password until then. */
export function discreet<Client extends RedisClient>(redis: Client): Client {
  redis.on("error", forgetArguments);
  return redis;
}

function open(target: RedisTarget, { single, cluster }: Manner): RedisClient {
  const common = {
    ...single,
    retryStrategy: reconnectAfterMs,
    // A primary that became a replica while its address stayed: the next connection may lead to the new primary.
    reconnectOnError(error: Error) {
      // The one place where ioredis shows every refusal before its caller gets it.
      forgetArguments(error);
      return error.message.startsWith("READONLY");
    },
    // The answers of our scripts and of BullMQ's are decoded in this form.
    replyMapping: "legacy" as const,
  };
  const onCluster = (nodes: readonly RedisAddress[], options: ClusterOptions = {}): Cluster => {
    const { retryStrategy: _, enableOfflineQueue, ...perNode } = common;
    return new Cluster([...nodes], {
      ...options,
      ...defined({ enableOfflineQueue }),
      clusterRetryStrategy: reconnectAfterMs,
      ...cluster,
      redisOptions: { ...options.redisOptions, ...perNode },
    });
  };

  if ("nodes" in target) return onCluster(target.nodes, target.options);
  if (!("url" in target)) return new Redis({ ...target, ...common });
  const url = readUrl(target.url);
  if (url.kind === "single") {
    // ioredis takes a socket as a bare path.
    return new Redis(url.url.replace(/^unix:\/\//, ""), common);
  }
  const { username, password } = url;
  const access = {
    ...defined({ username, password }),
    ...(url.tls ? { tls: {} } : {}),
  };
  if (url.kind === "cluster") return onCluster(url.nodes, { redisOptions: access });
  return new Redis({
    ...access,
    sentinels: [...url.nodes],
    name: url.name,
    db: url.db,
    enableTLSForSentinelMode: url.tls,
    // Told of a new primary by the Sentinels, also when the old one hangs and no connection breaks.
    failoverDetector: true,
    Connector: SteadySentinelConnector,
    // One that accepts connections and never answers must not keep us from the others.
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    ...common,
  });
}

function readUrl(url: string): RedisUrl {
  try {
    return parseRedisUrl(url);
  } catch (error) {
    throw new KonvergeError("invalid_config", `the Redis URL cannot be used: ${reasonOf(error)}`);
  }
}

/** Without the error as cause: the URL may hold a password (P12). */
function reasonOf(error: unknown): string {
  return error instanceof RangeError ? error.message : "it cannot be read";
}

/** Every node that takes writes: one, or the primaries of a Redis Cluster. */
export function primariesOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes("master") : [redis];
}
