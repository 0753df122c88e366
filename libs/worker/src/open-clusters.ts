import { KonvergeError } from "@konverge/core";
import type { ClusterOptions } from "./config/cluster-options.ts";
import { namesIn, type NamespaceSelection } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import type { ReachableClusters } from "@konverge/engine";
import { createObjectLanes, type ObjectLanes } from "@konverge/lanes";
import { bindCluster, type ClusterRegistry } from "@konverge/queue";
import type { ClusterAccess } from "@konverge/workflow";
import {
  connectCluster,
  identityNamespace,
  readClusterUid,
  type ClusterConnection,
  type ClusterConnector,
} from "./connect-cluster.ts";

export interface OpenClustersOptions {
  /** The cluster that the worker serves, already connected. */
  readonly home: {
    readonly name: string;
    readonly client: KubeClient;
    readonly namespaces?: NamespaceSelection | undefined;
  };
  readonly clusters: Readonly<Record<string, ClusterOptions>>;
  /** Used instead of a file, for a cluster without one. */
  readonly kubeconfigText: string | undefined;
  readonly connector: ClusterConnector;
  readonly registry: Pick<ClusterRegistry, "claim">;
}

export interface OpenClusters extends ClusterAccess, ReachableClusters {
  close(): Promise<void>;
}

/**
 * The clusters of a configuration. Clusters other than the home are connected on first use, with their own guard, and bound to
 * their name in Redis before any other call. After a failure, the next use retries.
 */
export function openClusters(options: OpenClustersOptions): OpenClusters {
  const { home, clusters, kubeconfigText, connector, registry } = options;
  const { settings, log } = connector;
  const connections = new Map<string, Promise<ClusterConnection>>();
  const releases: (() => Promise<void>)[] = [];
  const lanes = new Map<string, ObjectLanes>();
  const closing = new AbortController();

  const bind = async (name: string, { client }: ClusterConnection) => {
    const { shards = 1, namespaces } = clusters[name] ?? {};
    const identity = identityNamespace(namespaces, settings);
    const uid = await readClusterUid(client.scoped({ signal: closing.signal }), identity);
    const onLost = (error: Error) =>
      log.error({ err: error, cluster: name }, "cluster served under another name");
    const release = await registry.claim({ cluster: name, uid, onLost });
    const redis = { url: settings.redisUrl };
    try {
      await bindCluster({ redis, prefix: settings.prefix, cluster: name, uid, shards });
    } catch (error) {
      // If Redis is unavailable, the claim expires.
      await release().catch(() => undefined);
      throw error;
    }
    releases.push(release);
    log.info({ cluster: name, server: client.server }, "cluster connected");
  };

  const connect = async (name: string): Promise<ClusterConnection> => {
    const connection = await connectCluster(
      { ...connector, log: log.child({ cluster: name }) },
      targetOf(name, clusters, kubeconfigText),
    );
    try {
      await bind(name, connection);
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  };

  const clientOf = async (name: string): Promise<KubeClient> => {
    if (name === home.name) return home.client;
    if (closing.signal.aborted) throw new KonvergeError("cancelled", "the worker is stopping");
    let connecting = connections.get(name);
    if (connecting === undefined) {
      connecting = connect(name);
      connections.set(name, connecting);
      void connecting.catch(() => connections.delete(name));
    }
    return (await connecting).client;
  };

  const lanesOf = (name: string): ObjectLanes => {
    const known =
      lanes.get(name) ??
      createObjectLanes({
        redis: { url: settings.redisUrl },
        prefix: settings.prefix,
        cluster: name,
        processId: connector.workerId,
        onError: (error) =>
          log.debug({ err: error, cluster: name }, "object lane degraded, Redis unavailable"),
      });
    lanes.set(name, known);
    return known;
  };

  return {
    home: home.name,
    namespaces: (name) =>
      namesIn(name === home.name ? home.namespaces : clusters[name]?.namespaces),
    client: clientOf,
    async reach(name) {
      const client = await clientOf(name);
      return { client, lanes: lanesOf(name) };
    },
    async close() {
      closing.abort();
      for (const each of lanes.values()) each.close();
      const settled = await Promise.allSettled(connections.values());
      for (const one of settled) if (one.status === "fulfilled") await one.value.close();
      for (const release of releases) await release();
    },
  };
}

/** @throws KonvergeError `invalid_request` for an unknown name, `invalid_config` for a cluster without its own address */
function targetOf(
  name: string,
  clusters: Readonly<Record<string, ClusterOptions>>,
  kubeconfigText: string | undefined,
): Parameters<typeof connectCluster>[1] {
  const cluster = Object.hasOwn(clusters, name) ? clusters[name] : undefined;
  if (cluster === undefined) {
    throw new KonvergeError(
      "invalid_request",
      `cluster "${name}" is not in the clusters of the configuration: ${Object.keys(clusters).join(", ")}`,
    );
  }
  const { kubeconfig, context } = cluster;
  if (kubeconfig === undefined && context === undefined) {
    throw new KonvergeError(
      "invalid_config",
      `clusters.${name}: has neither kubeconfig nor context; set one, so that workers of other clusters can connect to it`,
    );
  }
  return {
    name,
    cluster,
    kubeconfigText: kubeconfig === undefined ? kubeconfigText : undefined,
    context,
    namespaces: cluster.namespaces,
  };
}
