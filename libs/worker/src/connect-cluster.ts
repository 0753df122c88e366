import type { Settings } from "@konverge/contracts";
import { defined, type Gate } from "@konverge/core";
import { credentialsFrom, type ClusterOptions } from "./config/cluster-options.ts";
import { namesIn, type Log, type NamespaceSelection } from "@konverge/engine";
import type { Guard } from "@konverge/guard";
import {
  createKubeClient,
  loadKubeCredentials,
  type KubeClient,
  type KubeConfigObject,
  type KubeCredentialsOptions,
} from "@konverge/kube";
import { Namespace } from "@konverge/kube/kinds";
import type { Metrics } from "@konverge/telemetry";
import { createRotatingCredentials } from "./clusters/rotating-credentials.ts";
import { startGuard } from "./start-guard.ts";

/** The part that all connections of a worker share. */
export interface ClusterConnector {
  readonly settings: Settings;
  readonly version: string;
  readonly workerId: string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The environment in which to find a kubeconfig and a proxy. */
  readonly env: NodeJS.ProcessEnv;
  /** Resources as `plural.group`, in addition to Secrets (P12). */
  readonly sensitiveResources?: readonly string[];
  /** True for a process that only plans: it can send only reads and dry runs, and keeps the limits of the workers. */
  readonly isPlanner?: boolean;
}

export interface ClusterTarget {
  /** All workers with this name share one guard. */
  readonly name: string;
  readonly cluster: ClusterOptions;
  /** Used instead of a file. */
  readonly kubeconfigText: string | undefined;
  /** Used instead of a file, for a cluster without one. */
  readonly kubeConfig?: KubeConfigObject | undefined;
  readonly context: string | undefined;
  /** The source of a provided cluster's credentials, instead of all others. */
  readonly provided?: KubeCredentialsOptions | undefined;
  /** The namespaces that the worker watches. Undefined: all. */
  readonly namespaces: NamespaceSelection | undefined;
}

/** An API server with its guard. */
export interface ClusterConnection {
  /** Each call passes the guard and is counted. */
  readonly client: KubeClient;
  readonly guard: Guard;
  /**
   * Uses other credentials from now on, if they lead to the same cluster.
   * @returns false if they have another server, or if the cluster could not be compared; the old ones then stay
   */
  rotate(credentials: KubeCredentialsOptions, uid: string): Promise<boolean>;
  close(): Promise<void>;
}

/** Sends no call. @throws KonvergeError `invalid_config`, `redis_unavailable` */
export async function connectCluster(
  connector: ClusterConnector,
  { name, cluster, kubeconfigText, kubeConfig, context, namespaces, provided }: ClusterTarget,
): Promise<ClusterConnection> {
  const { settings, version, workerId, log, metrics, env, isPlanner = false } = connector;
  const credentials = createRotatingCredentials(
    loadKubeCredentials({
      env,
      ...(provided ?? {
        ...credentialsFrom(cluster.kubeconfig ?? kubeConfig ?? settings.kubeconfig),
        ...defined({ kubeconfigText, context }),
      }),
    }),
  );
  const guard = await startGuard({
    settings,
    name,
    cluster,
    workerId,
    log,
    keepLimits: isPlanner,
    probe: (signal) =>
      readClusterUid(
        client.scoped({ signal, priority: "critical", isProbe: true }),
        identityNamespace(namespaces, settings),
      ),
  });
  const gate = counted(guard, metrics.ofCluster(name), new URL(credentials.server).host);
  const userAgent = `konverge-${isPlanner ? "planner" : "worker"}/${version}`;
  const { requestTimeout: requestTimeoutMs } = settings;
  const client = createKubeClient({
    credentials,
    gate,
    userAgent,
    requestTimeoutMs,
    isDryRunOnly: isPlanner,
    // As many as the guard admits at once.
    ...defined({
      maxConnections: cluster.maxInFlight,
      sensitiveResources: connector.sensitiveResources,
    }),
  });
  const unobserve = metrics.observeGuard(name, () => ({
    mode: guard.breaker.mode,
    ratePerSecond: guard.ratePerSecond,
    waiting: guard.waiting,
    inFlight: guard.inFlight,
    ...guard.counts,
  }));
  let closing: Promise<void> | undefined;
  return {
    client,
    guard,
    async rotate(options, uid) {
      const next = loadKubeCredentials({ env, ...options });
      if (!credentials.accepts(next)) return false;
      const trial = createKubeClient({ credentials: next, gate, userAgent, requestTimeoutMs });
      try {
        const found = await readClusterUid(trial, identityNamespace(namespaces, settings));
        if (found !== uid) return false;
      } catch {
        return false;
      } finally {
        await trial.close();
      }
      credentials.rotate(next);
      return true;
    },
    close() {
      closing ??= (async () => {
        unobserve();
        await client.close();
        await guard.close();
      })();
      return closing;
    },
  };
}

/** Counts every call at the one place that all of them pass. */
function counted(gate: Gate, metrics: Metrics, host: string): Gate {
  return {
    async admit(call, options) {
      const permit = await gate.admit(call, options);
      const startedMs = performance.now();
      return {
        waitedMs: permit.waitedMs,
        settle(result) {
          const code = result.kind === "response" ? result.status : 0;
          metrics.apiCall({
            verb: call.verb,
            host,
            code,
            seconds: (performance.now() - startedMs) / 1_000,
            waitedSeconds: permit.waitedMs / 1_000,
          });
          permit.settle(result);
        },
      };
    },
    withoutCredentials: (error) => gate.withoutCredentials?.(error) ?? error,
  };
}

/** The namespace whose uid identifies a cluster. With names of namespaces, the account may have no access to kube-system. */
export function identityNamespace(
  namespaces: NamespaceSelection | undefined,
  { leaseNamespace }: Pick<Settings, "leaseNamespace">,
): string {
  return namesIn(namespaces) === undefined ? "kube-system" : leaseNamespace;
}

/**
 * Returns the uid of a namespace, which identifies a cluster independently of its name. An account without access to kube-system
 * reads the namespace of its Leases instead.
 */
export async function readClusterUid(client: KubeClient, namespace: string): Promise<string> {
  const { metadata } = await client.get(Namespace, { name: namespace });
  return metadata.uid ?? "";
}
