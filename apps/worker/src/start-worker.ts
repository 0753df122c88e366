import { createServer, type Server } from "node:http";
import { hostname } from "node:os";
import type { Settings } from "@konverge/contracts";
import { ensureError, KonvergeError, type Gate } from "@konverge/core";
import { defineConfig, reportStrayErrors, startEngine, type Config } from "@konverge/engine";
import type { Guard } from "@konverge/guard";
import { createKubeClient, loadKubeCredentials, type KubeClient } from "@konverge/kube";
import {
  bindCluster,
  checkRedis,
  createControllerRegistry,
  createHistoryWriter,
  createWorkQueue,
  createObjectLanes,
} from "@konverge/queue";
import {
  createLogger,
  createMetrics,
  loadTracing,
  observeRequests,
  type Metrics,
} from "@konverge/telemetry";
import { startGuard } from "./start-guard.ts";

const BYTES_PER_MIB = 1_048_576;

export interface WorkerOptions {
  readonly config: Config;
  readonly settings: Settings;
  readonly version: string;
}

export interface RunningWorker {
  readonly metricsUrl: string;
  /** Drains: not ready, takes nothing new, waits for running attempts up to the grace, aborts the rest, releases. */
  stop(): Promise<void>;
}

/**
 * Runs the controllers of a configuration on one cluster, in this process.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`, `shards_mismatch` or `crd_mismatch`, before any work is taken.
 */
export async function startWorker({
  config,
  settings,
  version,
}: WorkerOptions): Promise<RunningWorker> {
  // Again, for a configuration that did not come from defineConfig.
  defineConfig(config);
  const cluster = config.clusters[settings.cluster];
  if (cluster === undefined) {
    throw new KonvergeError(
      "invalid_config",
      `KONVERGE_CLUSTER: "${settings.cluster}" is not among the clusters of the configuration: ${Object.keys(config.clusters).join(", ")}`,
    );
  }
  const log = createLogger({ service: "worker", version, level: settings.logLevel });
  const metrics = createMetrics({ version, ofProcess: true });
  const tracing = await loadTracing(version);
  const workerId = `${hostname()}-${process.pid}`;
  const cleanup = new AsyncDisposableStack();
  if (tracing !== undefined) cleanup.defer(() => tracing.flush());
  cleanup.defer(reportStrayErrors({ log }));
  try {
    const redis = { url: settings.redisUrl };
    const { prefix, cluster: clusterName } = settings;
    const facts = await checkRedis(redis);
    for (const warning of facts.warnings) log.warn({ warning }, "redis warning");
    const guard = await startGuard({
      settings,
      cluster,
      workerId,
      log,
      probe: (signal) =>
        readClusterUid(client.scoped({ signal, priority: "critical", isProbe: true })),
    });
    cleanup.defer(() => guard.close());
    metrics.observeGuard(clusterName, () => ({
      mode: guard.breaker.mode,
      ratePerSecond: guard.ratePerSecond,
      waiting: guard.waiting,
      inFlight: guard.inFlight,
      ...guard.counts,
    }));
    const client = connect({ settings, cluster, version, guard, metrics });
    cleanup.defer(() => client.close());
    const { shards = 1 } = cluster;
    const binding = { uid: await readClusterUid(client), shards };
    await bindCluster({ redis, prefix, cluster: clusterName, ...binding });

    const registry = createControllerRegistry({
      redis,
      prefix,
      cluster: clusterName,
      binding,
      onError: (error) => log.warn({ err: error }, "registry error"),
    });
    cleanup.defer(() => registry.close());
    await registry.announce(
      config.controllers.map(({ name, for: type }) => ({
        name,
        cluster: clusterName,
        group: type.group,
        version: type.version,
        kind: type.kind,
        resource: type.resource,
        scope: type.scope,
      })),
    );
    const lanes = createObjectLanes({
      redis,
      prefix,
      cluster: clusterName,
      processId: workerId,
      onError: (error) => log.debug({ err: error }, "lane without Redis"),
    });
    cleanup.defer(() => lanes.close());
    const history = createHistoryWriter({
      redis,
      prefix,
      cluster: clusterName,
      shards,
      budgetBytes: settings.recordBudgetMiB * BYTES_PER_MIB,
      onError: (error) => log.debug({ err: error }, "history without Redis"),
    });
    cleanup.defer(() => history.close());
    const engine = await startEngine({
      controllers: config.controllers,
      use: config.use,
      client,
      lanes,
      history,
      queueFor: ({ name }) =>
        createWorkQueue({
          redis,
          controller: name,
          cluster: clusterName,
          prefix,
          shards,
          onError: (error) => log.warn({ err: error, controller: name }, "queue connection error"),
          observe: observeRequests(metrics, tracing),
        }),
      workerId,
      log,
      metrics,
      ...(tracing === undefined ? {} : { tracing }),
      conflictRetry: settings.conflictRetry,
      ...(settings.concurrency === undefined ? {} : { concurrency: settings.concurrency }),
      onWorkable: (listener) => guard.onWorkable(listener),
      installation: prefix,
      leaseNamespace: settings.leaseNamespace,
      election: electionTimes(settings.leaseDuration),
    });
    cleanup.defer(() => engine.stop({ graceMs: settings.drainGrace }));
    registry.heartbeat({
      workerId,
      controllers: config.controllers.map(({ name }) => name),
      version,
      startedAt: new Date().toISOString(),
      host: hostname(),
    });
    const server = await serveMetrics({
      settings,
      metrics,
      isReady: () => engine.ready && guard.health !== "unwell",
    });
    cleanup.defer(() => closeServer(server));
    const disposal = cleanup.move();
    const metricsUrl = `${urlOf(server, settings.metricsHost)}/metrics`;
    log.info({ metricsUrl, workerId, cluster: clusterName, server: client.server }, "worker ready");
    return {
      metricsUrl,
      async stop() {
        log.info({ graceMs: settings.drainGrace }, "worker stopping");
        await disposal.disposeAsync();
        log.info({}, "worker stopped");
      },
    };
  } catch (error) {
    await cleanup.disposeAsync();
    throw error;
  }
}

function connect({
  settings,
  cluster,
  version,
  guard,
  metrics,
}: {
  readonly settings: Settings;
  readonly cluster: Config["clusters"][string];
  readonly version: string;
  readonly guard: Guard;
  readonly metrics: Metrics;
}): KubeClient {
  const kubeconfigPath = cluster.kubeconfig ?? settings.kubeconfig;
  const context = cluster.context ?? settings.context;
  const credentials = loadKubeCredentials({
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
async function readClusterUid(client: KubeClient): Promise<string> {
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

/** client-go's proportions, 15 s : 10 s : 2 s. */
function electionTimes(leaseDurationMs: number) {
  return {
    leaseDurationMs,
    renewDeadlineMs: (leaseDurationMs * 2) / 3,
    retryPeriodMs: (leaseDurationMs * 2) / 15,
  };
}

async function serveMetrics({
  settings,
  metrics,
  isReady,
}: {
  readonly settings: Settings;
  readonly metrics: Metrics;
  readonly isReady: () => boolean;
}): Promise<Server> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://worker").pathname;
    const answer = (status: number, text: string, contentType = "text/plain; charset=utf-8") =>
      response.writeHead(status, { "content-type": contentType }).end(text);
    switch (path) {
      case "/metrics":
        metrics.text().then(
          (text) => answer(200, text, metrics.contentType),
          (error: unknown) => answer(500, ensureError(error).message),
        );
        return;
      case "/livez":
        answer(200, "ok\n");
        return;
      case "/readyz":
        answer(
          isReady() ? 200 : 503,
          isReady()
            ? "ok\n"
            : "the first lists are not in, it stops, or it cannot reach the API server\n",
        );
        return;
      default:
        answer(404, "known are /metrics, /livez and /readyz\n");
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(
        error.code === "EADDRINUSE"
          ? new KonvergeError(
              "invalid_config",
              `KONVERGE_METRICS_PORT: ${settings.metricsPort} is taken; set another one, or 0 for any`,
              { cause: error },
            )
          : error,
      );
    });
    server.listen(settings.metricsPort, settings.metricsHost, resolve);
  });
  return server;
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve, reject) => {
    server.close((error) => (error === undefined ? resolve() : reject(error)));
  });
}
