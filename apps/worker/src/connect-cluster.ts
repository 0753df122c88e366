import type { Settings } from "@konverge/contracts";
import type { Gate } from "@konverge/core";
import type { Config } from "@konverge/engine";
import type { Guard } from "@konverge/guard";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import type { Metrics } from "@konverge/telemetry";

export interface ConnectOptions {
  readonly settings: Settings;
  readonly cluster: Config["clusters"][string];
  readonly version: string;
  readonly guard: Guard;
  readonly metrics: Metrics;
  /** In place of a file. */
  readonly kubeconfigText: string | undefined;
  /** What may be read to find a kubeconfig and a proxy. */
  readonly env: NodeJS.ProcessEnv;
}

/** A client whose every call asks the guard and is counted. @throws KonvergeError `invalid_config` */
export function connectCluster({
  settings,
  cluster,
  version,
  guard,
  metrics,
  kubeconfigText,
  env,
}: ConnectOptions): KubeClient {
  const kubeconfigPath = cluster.kubeconfig ?? settings.kubeconfig;
  const context = cluster.context ?? settings.context;
  const credentials = loadKubeCredentials({
    env,
    ...(kubeconfigText === undefined ? {} : { kubeconfigText }),
    ...(kubeconfigPath === undefined ? {} : { kubeconfigPath }),
    ...(context === undefined ? {} : { context }),
  });
  return createKubeClient({
    credentials,
    gate: counted(guard, metrics, new URL(credentials.server).host),
    userAgent: `konverge-worker/${version}`,
    requestTimeoutMs: settings.requestTimeout,
    // As many as the guard lets through at once.
    ...(cluster.maxInFlight === undefined ? {} : { maxConnections: cluster.maxInFlight }),
  });
}

/** Counts every call where all calls pass. */
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
  };
}

/** The uid of kube-system is what tells clusters apart, whatever they are called. */
export async function readClusterUid(client: KubeClient): Promise<string> {
  const namespaces = {
    group: "",
    version: "v1",
    kind: "Namespace",
    resource: "namespaces",
    scope: "Cluster",
  } as const;
  const { metadata } = await client.get(namespaces, { name: "kube-system" });
  return metadata.uid ?? "";
}
