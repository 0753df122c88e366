import { KonvergeError } from "@konverge/core";
import type { Config } from "./config/define-config.ts";
import type { KubeClient } from "@konverge/kube";
import { bindCluster } from "@konverge/queue";
import type { ClusterAccess } from "@konverge/workflow";
import {
  connectCluster,
  readClusterUid,
  type ClusterConnection,
  type ClusterConnector,
} from "./connect-cluster.ts";

export interface OpenClustersOptions {
  /** The cluster that the worker serves, which is connected already. */
  readonly home: { readonly name: string; readonly client: KubeClient; readonly uid: string };
  readonly clusters: Config["clusters"];
  /** In place of a file, where a cluster names none. */
  readonly kubeconfigText: string | undefined;
  readonly connector: ClusterConnector;
}

export interface OpenClusters extends ClusterAccess {
  close(): Promise<void>;
}

/**
 * The clusters of a configuration. One other than the home is connected when it is first asked for, by its own guard, and bound to
 * its name in Redis before anything else is sent; what fails then is tried again by whoever asks next.
 */
export function openClusters(options: OpenClustersOptions): OpenClusters {
  const { home, clusters, kubeconfigText, connector } = options;
  const { settings, log } = connector;
  const connections = new Map<string, Promise<ClusterConnection>>();
  /** Names by uid: one API server under two names has two budgets. */
  const names = new Map([[home.uid, home.name]]);
  const closing = new AbortController();

  const bind = async (name: string, { client }: ClusterConnection) => {
    const uid = await readClusterUid(client.scoped({ signal: closing.signal }));
    const { shards = 1 } = clusters[name] ?? {};
    const redis = { url: settings.redisUrl };
    await bindCluster({ redis, prefix: settings.prefix, cluster: name, uid, shards });
    const other = names.get(uid) ?? name;
    if (other !== name) {
      log.warn({ cluster: name, other }, "duplicate cluster, API server gets both rates");
    }
    names.set(uid, other);
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

  return {
    home: home.name,
    async client(name) {
      if (name === home.name) return home.client;
      if (closing.signal.aborted) throw new KonvergeError("cancelled", "the worker stops");
      let connecting = connections.get(name);
      if (connecting === undefined) {
        connecting = connect(name);
        connections.set(name, connecting);
        void connecting.catch(() => connections.delete(name));
      }
      return (await connecting).client;
    },
    async close() {
      closing.abort();
      const settled = await Promise.allSettled(connections.values());
      for (const one of settled) if (one.status === "fulfilled") await one.value.close();
    },
  };
}

/** @throws KonvergeError `invalid_request` for a name that there is not, `invalid_config` for one that leads nowhere of its own */
function targetOf(
  name: string,
  clusters: Config["clusters"],
  kubeconfigText: string | undefined,
): Parameters<typeof connectCluster>[1] {
  const cluster = Object.hasOwn(clusters, name) ? clusters[name] : undefined;
  if (cluster === undefined) {
    throw new KonvergeError(
      "invalid_request",
      `cluster "${name}" is not among those of the configuration: ${Object.keys(clusters).join(", ")}`,
    );
  }
  const { kubeconfig, context } = cluster;
  if (kubeconfig === undefined && context === undefined) {
    throw new KonvergeError(
      "invalid_config",
      `clusters.${name}: a worker of another cluster finds it by kubeconfig or context; give one of them`,
    );
  }
  return {
    name,
    cluster,
    kubeconfigText: kubeconfig === undefined ? kubeconfigText : undefined,
    context,
  };
}
