import { defined } from "@konverge/core";
import { readSettings, type SettingsInput } from "@konverge/contracts";
import type { Config } from "./config/define-config.ts";
import type { WorkerRole } from "@konverge/core";
import type { Log } from "@konverge/engine";
import { createLogger, createMetrics } from "@konverge/telemetry";
import { openWorker } from "./open-worker.ts";

export interface WorkerOptions {
  /** What `defineConfig` made. */
  readonly config: Config;
  /** URL of Redis. Default: `settings.redisUrl` of the configuration, else `redis://127.0.0.1:6379`. */
  readonly redis?: string;
  /** Path of a kubeconfig, or its text. Default: what the configuration says, else what `env` leads to. */
  readonly kubeconfig?: string | { readonly text: string };
  /** Default: as the configuration says, else `all`. */
  readonly role?: WorkerRole;
  /** Which cluster of the configuration. Default: as its settings say, else `default`. */
  readonly cluster?: string;
  /** Takes what is logged, in pino's shape. Default: JSON lines on stdout. */
  readonly log?: Log;
  /** Where a kubeconfig, a service account and a proxy are looked for, as kubectl does: `process.env` in a pod. Default: nowhere. */
  readonly env?: NodeJS.ProcessEnv;
  /** Shown to the API server and in the list of workers. */
  readonly version?: string;
}

/** Controllers at work in somebody's process. */
export interface RunningWorker extends AsyncDisposable {
  /** Unique in the fleet. */
  readonly workerId: string;
  /** False once it stops, and while the API server cannot be reached from here. */
  readonly ready: boolean;
  /** What Prometheus reads, of this worker alone. */
  metrics(): Promise<string>;
  /**
   * Takes nothing new, waits for running attempts up to `graceMs` (default `shutdownGrace`, 30 s), aborts the rest and releases
   * leadership, connections and timers: a process that has nothing else to do ends. With Redis or the API server away that
   * takes at most about 6 s more than `graceMs`.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** As `stop`, or in the middle of one, but aborts running attempts at once; their keys run again elsewhere. */
  kill(): Promise<void>;
}

/**
 * Runs controllers inside of a process of one's own. It reads no environment, catches no signal, opens no port and never ends
 * the process; what a handler leaves behind and nobody catches is the process's to handle.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`, `shards_mismatch`,
 * `crd_mismatch` or `forbidden`, before any work is taken, and leaves nothing open
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { config, redis, kubeconfig, role, cluster, env = {}, version = "embedded" } = options;
  const file: SettingsInput = {
    ...config.settings,
    ...defined({ redisUrl: redis }),
    ...(typeof kubeconfig === "string" ? { kubeconfig } : {}),
    ...defined({ role, cluster }),
  };
  const settings = readSettings({ file, env: {} });
  const log = options.log ?? createLogger({ service: "worker", version, level: settings.logLevel });
  const metrics = createMetrics({ version });
  const kubeconfigText = typeof kubeconfig === "object" ? kubeconfig.text : undefined;
  const worker = await openWorker({ config, settings, version, log, metrics, env, kubeconfigText });
  return {
    workerId: worker.workerId,
    get ready() {
      return worker.ready;
    },
    metrics: () => metrics.text(),
    stop: (how) => worker.stop(how),
    kill: () => worker.kill(),
    [Symbol.asyncDispose]: () => worker.stop(),
  };
}
