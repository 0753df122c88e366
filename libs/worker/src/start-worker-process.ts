import type { Settings } from "@konverge/contracts";
import { defined } from "@konverge/core";
import { reportStrayErrors } from "@konverge/engine";
import { type Config } from "./config/define-config.ts";
import { createLogger, createMetrics } from "@konverge/telemetry";
import type { OpenWorker } from "./cluster-worker.ts";
import { openWorker } from "./open-worker.ts";
import { startProbeServer } from "./probe-server.ts";

export interface WorkerProcessOptions {
  readonly config: Config;
  readonly settings: Settings;
  readonly version: string;
  /** Ends the waits of the start: for Redis and the API server, and for clusters that do not respond. Default: nothing does. */
  readonly stopping?: AbortSignal;
}

export interface WorkerProcess {
  readonly metricsUrl: string;
  /** Not ready from now on, but alive and serving metrics until it has drained, up to the grace. */
  stop(): Promise<void>;
  /** As `stop`, or during one, but aborts running attempts at once; their keys run again in another worker. */
  kill(): Promise<void>;
}

/**
 * Runs a worker in its own process, with probes and metrics over HTTP, and with handling of uncaught errors.
 * @throws KonvergeError as `startWorker`
 */
export async function startWorkerProcess({
  config,
  settings,
  version,
  stopping,
}: WorkerProcessOptions): Promise<WorkerProcess> {
  const log = createLogger({
    service: "worker",
    version,
    level: settings.logLevel,
    linesPerSecond: settings.logLimit,
  });
  const metrics = createMetrics({ version, installation: settings.prefix, ofProcess: true });
  await using starting = new AsyncDisposableStack();
  starting.defer(reportStrayErrors({ log }));
  let worker: OpenWorker | undefined;
  const isReady = () => worker?.ready ?? false;
  const probes = await startProbeServer({ settings, metrics, isReady });
  starting.defer(() => probes.close());
  const opened = await openWorker({
    config,
    settings,
    version,
    log,
    metrics,
    env: process.env,
    ...defined({ stopping }),
  });
  worker = opened;
  const metricsUrl = `${probes.url}/metrics`;
  const clusters = opened.clusters.map(({ name }) => name);
  log.info({ metricsUrl, workerId: opened.workerId, clusters }, "worker ready");
  const rest = starting.move();
  const end = async (ended: Promise<void>) => {
    await ended;
    await rest.disposeAsync();
  };
  let ending: Promise<void> | undefined;
  return {
    metricsUrl,
    stop() {
      ending ??= end(opened.stop());
      return ending;
    },
    async kill() {
      ending ??= end(opened.kill());
      await opened.kill();
      await ending;
    },
  };
}
