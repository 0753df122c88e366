import { defined } from "@konverge/core";
import { readSettings, type SettingsInput } from "@konverge/contracts";
import type { ClusterStatus } from "./clusters/cluster-status.ts";
import type { Config } from "./config/define-config.ts";
import type { WorkerRole } from "@konverge/core";
import type { Log } from "@konverge/engine";
import { isKubeConfig, type KubeConfigObject } from "@konverge/kube";
import { createLogger, createMetrics } from "@konverge/telemetry";
import { openWorker } from "./open-worker.ts";

export interface WorkerOptions {
  /** The result of `defineConfig`. */
  readonly config: Config;
  /** URL of Redis. Default: `settings.redisUrl` of the configuration, else `redis://127.0.0.1:6379`. */
  readonly redis?: string;
  /**
   * Path or text of a kubeconfig, or a loaded `KubeConfig` of `@kubernetes/client-node`. Default: that of the configuration, or
   * else found with `env`.
   */
  readonly kubeconfig?: string | { readonly text: string } | KubeConfigObject;
  /** Default: from the configuration, or else `all`. */
  readonly role?: WorkerRole;
  /** A cluster of the configuration. Default: from its settings, or else all. */
  readonly cluster?: string;
  /** A logger compatible with pino. Default: JSON lines on stdout. */
  readonly log?: Log;
  /** Environment in which to find a kubeconfig, a service account and a proxy, as kubectl does; `process.env` in a pod. Default: empty. */
  readonly env?: NodeJS.ProcessEnv;
  /** Shown to the API server and in the list of workers. */
  readonly version?: string;
}

/** Controllers that run in the caller's process. */
export interface RunningWorker extends AsyncDisposable {
  /** Unique among all workers. */
  readonly workerId: string;
  /** False while stopping, and while the API server is unreachable from here. */
  readonly ready: boolean;
  /** The clusters that the worker serves, or tries to serve. */
  readonly clusters: readonly ClusterStatus[];
  /** The metrics of this worker, as text for Prometheus. */
  metrics(): Promise<string>;
  /**
   * Takes no new work, waits up to `graceMs` (default `shutdownGrace`, 30 s) for running attempts, aborts the rest and releases
   * leadership, connections and timers, so that an otherwise idle process exits. If Redis or the API server is unavailable,
   * this takes at most about 6 s more than `graceMs`.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** As `stop`, or during one, but aborts running attempts at once; their keys run again in another worker. */
  kill(): Promise<void>;
}

/**
 * Runs controllers in the caller's process. It reads no environment variables, handles no signals, opens no port and never exits
 * the process. Uncaught errors of a handler's leftover promises and timers are left to the process.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`,
 * `duplicate_cluster`, `shards_mismatch`, `crd_mismatch` or `forbidden`, before any work is taken, and leaves nothing open. With
 * several clusters, one that cannot be used is reported in `clusters` instead
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { config, redis, kubeconfig, role, cluster, env = {}, version = "embedded" } = options;
  const file: SettingsInput = {
    // The caller decides whether to try again.
    startTimeout: "0s",
    ...config.settings,
    ...defined({ redisUrl: redis }),
    ...(typeof kubeconfig === "string" ? { kubeconfig } : {}),
    ...defined({ role, cluster }),
  };
  const settings = readSettings({ file, env: {} });
  const log =
    options.log ??
    createLogger({
      service: "worker",
      version,
      level: settings.logLevel,
      linesPerSecond: settings.logLimit,
    });
  const metrics = createMetrics({ version, installation: settings.prefix });
  const worker = await openWorker({
    config,
    settings,
    version,
    log,
    metrics,
    env,
    ...(isKubeConfig(kubeconfig) ? { kubeConfig: kubeconfig } : {}),
    ...(typeof kubeconfig === "object" && "text" in kubeconfig
      ? { kubeconfigText: kubeconfig.text }
      : {}),
  });
  return {
    workerId: worker.workerId,
    get ready() {
      return worker.ready;
    },
    get clusters() {
      return worker.clusters;
    },
    metrics: () => metrics.text(),
    stop: (how) => worker.stop(how),
    kill: () => worker.kill(),
    [Symbol.asyncDispose]: () => worker.stop(),
  };
}
