import {
  defined,
  KonvergeError,
  parseRedisUrl,
  type RedisAddress,
  type RedisUrl,
} from "@konverge/core";
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from "ioredis";
import { openCredentialFiles, type CredentialFiles } from "./credential-files.ts";
import { forgetArguments } from "./forget-arguments.ts";
import { SteadySentinelConnector } from "./steady-sentinel-connector.ts";

/**
 * The address of Redis: a URL (forms in docs/configuration.md), the nodes of a Redis Cluster, or ioredis options for settings
 * that a URL cannot express, such as TLS files or a password of the Sentinels.
 */
export type RedisTarget =
  | {
      readonly url: string;
      /**
       * Longest wait of a caller for one answer, in ms. Default 900, for the tokens of a guard 1,000. Too low rejects
       * calls that would succeed; too high keeps callers waiting during an outage.
       */
      readonly deadlineMs?: number;
    }
  | { readonly nodes: readonly RedisAddress[]; readonly options?: ClusterOptions }
  | RedisOptions;

export type RedisClient = Redis | Cluster;

/** Connection options for a single server and for the nodes of a Redis Cluster. */
export interface Manner {
  readonly single: RedisOptions;
  readonly cluster: ClusterOptions;
}

/** The HTTP API must return its 503 within a second. */
export const PRODUCER_DEADLINE_MS = 900;
const MAX_RECONNECT_MS = 1_000;
const SENTINEL_TIMEOUT_MS = 2_000;
const reconnectAfterMs = (times: number) => Math.min(50 * times, MAX_RECONNECT_MS);

/** Connects in the background. @throws KonvergeError `invalid_config` for an invalid URL */
export function connect(target: RedisTarget, manner: Manner): RedisClient {
  return discreet(open(target, manner));
}

/** Must be called before other listeners are added: the error of a failed handshake contains the password. */
export function discreet<Client extends RedisClient>(redis: Client): Client {
  redis.on("error", forgetArguments);
  return redis;
}

function open(target: RedisTarget, { single, cluster }: Manner): RedisClient {
  const common = {
    ...single,
    retryStrategy: reconnectAfterMs,
    // The primary became a replica at the same address; the next connection may reach the new primary.
    reconnectOnError(error: Error) {
      // The only hook where ioredis exposes every error reply before the caller receives it.
      forgetArguments(error);
      return error.message.startsWith("READONLY");
    },
    // Before 7.2, Redis has no CLIENT SETINFO, so an ACL for all versions cannot permit it.
    disableClientInfo: true,
    // The replies to Konverge's and BullMQ's scripts are decoded in this form.
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
  return openUrl(readUrl(target.url), common, onCluster);
}

/** Options that all kinds of connections share. */
type Common = RedisOptions & { readonly replyMapping: "legacy" };

function openUrl(
  url: RedisUrl,
  common: Common,
  onCluster: (nodes: readonly RedisAddress[], options: ClusterOptions) => Cluster,
): RedisClient {
  const { tls, first, follow } = openCredentialFiles(url.files);
  if (url.kind === "single") {
    const withTls = { ...common, ...first, ...(url.url.startsWith("rediss:") ? { tls } : {}) };
    // ioredis takes a socket as a bare path.
    return followed(new Redis(url.url.replace(/^unix:\/\//, ""), withTls), follow);
  }
  const { username, password } = url;
  const access = {
    ...defined({ username, password }),
    ...first,
    ...(url.tls ? { tls } : {}),
  };
  if (url.kind === "cluster") {
    // Certificates are for names, so a node must not be addressed by its IP address.
    const byName: ClusterOptions = {
      dnsLookup: (address, callback) => callback(null, address),
    };
    const cluster = onCluster(url.nodes, {
      ...(url.tls ? byName : {}),
      redisOptions: access,
    });
    return followed(cluster, follow);
  }
  const redis = new Redis({
    ...access,
    sentinels: [...url.nodes],
    name: url.name,
    db: url.db,
    enableTLSForSentinelMode: url.tls,
    // The Sentinels speak TLS as well.
    ...(url.tls ? { sentinelTLS: tls } : {}),
    // Reports a new primary even if the old one hangs and no connection breaks.
    failoverDetector: true,
    Connector: SteadySentinelConnector,
    // A Sentinel that accepts connections but never answers must not block the others.
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    ...common,
  });
  return followed(redis, follow);
}

/** How the copies of a connection read their passwords. */
const FOLLOWS = new WeakMap<RedisClient, CredentialFiles["follow"]>();

function followed<Client extends RedisClient>(
  redis: Client,
  follow: CredentialFiles["follow"],
): Client {
  followAll(redis, follow);
  FOLLOWS.set(redis, follow);
  return redis;
}

function followAll(redis: RedisClient, follow: CredentialFiles["follow"]): void {
  if (redis instanceof Redis) return follow(redis);
  for (const node of redis.nodes()) follow(node);
  redis.on("+node", follow);
}

/** Makes the copy of a connection read its passwords from the same files. */
export function followLike(original: RedisClient, copy: RedisClient): void {
  const follow = FOLLOWS.get(original);
  if (follow !== undefined) followAll(copy, follow);
}

function readUrl(url: string): RedisUrl {
  try {
    return parseRedisUrl(url);
  } catch (error) {
    throw new KonvergeError("invalid_config", `invalid Redis URL: ${reasonOf(error)}`);
  }
}

/** Omits the error as cause: the URL may contain a password (P12). */
function reasonOf(error: unknown): string {
  return error instanceof RangeError ? error.message : "it cannot be parsed";
}

/** Returns every writable node: the single server, or the primaries of a Redis Cluster. */
export function primariesOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes("master") : [redis];
}
