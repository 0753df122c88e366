import { hostname } from "node:os";
import type { Settings } from "@konverge/contracts";
import { defined, DEFAULT_GUARD_LIMITS, KonvergeError } from "@konverge/core";
import { clusterLimits } from "./config/cluster-options.ts";
import { defineConfig, type Config } from "./config/define-config.ts";
import { requiredAccess, WAITS_LEASE } from "./config/controller-access.ts";
import { createShutdown, leaseName, startEngine, type Engine, type Log } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import {
  bindCluster,
  createControllerRegistry,
  createHistoryWriter,
  createWorkQueue,
} from "@konverge/queue";
import { checkRedis } from "@konverge/redis";
import { createObjectLanes } from "@konverge/lanes";
import { loadTracing, observeRequests, type Metrics } from "@konverge/telemetry";
import { connectCluster, readClusterUid } from "./connect-cluster.ts";
import { explainForbidden } from "./explain-forbidden.ts";
import { defineVersion, followFleet } from "./follow-fleet.ts";
import { onceAdmitted } from "./once-admitted.ts";
import { openClusters } from "./open-clusters.ts";
import { createRunStarter } from "./run-starter.ts";
import { createWorkflowRunner } from "./run-workflows.ts";

const BYTES_PER_MIB = 1_048_576;
/** Between two explanations of what is forbidden; each asks the API server. */
const FORBIDDEN_AGAIN_MS = 60_000;
/** Tells workers of one process apart. */
let serial = 0;

export interface OpenWorkerOptions {
  readonly config: Config;
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly kubeconfigText?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** A worker without anything that is the process's own business. */
export interface OpenWorker {
  readonly workerId: string;
  /** True from the first lists on until it stops, and while the API server can be reached from here. */
  readonly ready: boolean;
  /** Takes nothing new, waits for running attempts up to `graceMs`, aborts the rest, releases everything. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** As `stop`, or in the middle of one, but aborts running attempts at once; their keys run again elsewhere. */
  kill(): Promise<void>;
}

/**
 * Runs the controllers and workflows of a configuration on one cluster. In this order: the configuration is checked, Redis and the API server
 * are reached (while the fleet's breaker is open, that is waited for), the cluster is bound, producers stand for election, work
 * is taken.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`, `shards_mismatch`,
 * `crd_mismatch` or `forbidden`, before any work is taken
 */
export async function openWorker(options: OpenWorkerOptions): Promise<OpenWorker> {
  const { settings, version, log, metrics, env, kubeconfigText } = options;
  // Again, for a configuration that did not come from defineConfig.
  const config = defineConfig(options.config);
  const cluster = config.clusters[settings.cluster];
  if (cluster === undefined) {
    throw new KonvergeError(
      "invalid_config",
      `KONVERGE_CLUSTER: "${settings.cluster}" is not among the clusters of the configuration: ${Object.keys(config.clusters).join(", ")}`,
    );
  }
  const tracing = await loadTracing(version);
  serial += 1;
  const workerId = `${hostname()}-${process.pid}${serial === 1 ? "" : `-${serial}`}`;
  const release = createShutdown(log);
  const cleanup = new AsyncDisposableStack();
  const atEnd = (what: string, run: () => Promise<void>) =>
    cleanup.defer(() => release.step(what, run));
  if (tracing !== undefined) atEnd("the last spans", () => tracing.flush());
  let connected: KubeClient | undefined;
  const explain = (error: unknown) =>
    connected === undefined
      ? error
      : explainForbidden(error, connected, {
          access: requiredAccess(config, settings.prefix),
          leaseNamespace: settings.leaseNamespace,
        });
  try {
    const redis = { url: settings.redisUrl };
    const { prefix, cluster: clusterName } = settings;
    const facts = await checkRedis(redis);
    for (const warning of facts.warnings) log.warn({ warning }, "redis warning");
    const connector = { settings, version, workerId, log, metrics, env };
    const home = await connectCluster(connector, {
      name: clusterName,
      cluster,
      kubeconfigText,
      context: cluster.context ?? settings.context,
    });
    const { client, guard } = home;
    connected = client;
    atEnd("connections to the cluster", () => home.close());
    const { shards = 1 } = cluster;
    const uid = await onceAdmitted(
      () => readClusterUid(client),
      (error) => log.warn({ err: error }, "waiting for the API server"),
    );
    const binding = { uid, shards };
    await bindCluster({ redis, prefix, cluster: clusterName, ...binding });
    const clusters = openClusters({
      home: { name: clusterName, client, uid },
      clusters: config.clusters,
      kubeconfigText,
      connector,
    });
    atEnd("connections to other clusters", () => clusters.close());

    const registry = createControllerRegistry({
      redis,
      prefix,
      cluster: clusterName,
      binding,
      onError: (error) => log.warn({ err: error }, "registry error"),
    });
    atEnd("the place on the list of workers", () => registry.close());
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
      config.workflows,
    );
    const lanes = createObjectLanes({
      redis,
      prefix,
      cluster: clusterName,
      processId: workerId,
      onError: (error) => log.debug({ err: error }, "object lane degraded, Redis unavailable"),
    });
    cleanup.defer(() => lanes.close());
    const history = createHistoryWriter({
      redis,
      prefix,
      cluster: clusterName,
      shards,
      budgetBytes: settings.historyLimitMiB * BYTES_PER_MIB,
      onError: (error) => log.debug({ err: error }, "history without Redis"),
    });
    atEnd("the connection of the history", () => history.close());
    const definitions = Object.fromEntries(
      config.controllers.map((controller) => [
        controller.name,
        defineVersion(controller, settings.buildId),
      ]),
    );
    const runner = createWorkflowRunner({
      queues: { redis, prefix, cluster: clusterName, shards },
      log,
      release,
    });
    atEnd("connections of the workflows", () => runner.close());
    let engine: Engine | undefined;
    // Before the engine, so that nobody who leaves from now on leaves unnoticed.
    registry.heartbeat(
      {
        workerId,
        controllers: config.controllers.map(({ name }) => name),
        definitions,
        workflows: Object.fromEntries(
          config.workflows.map((workflow) => [workflow.name, workflow.version]),
        ),
        role: settings.role,
        version,
        startedAt: new Date().toISOString(),
        host: hostname(),
      },
      {
        onOthers: followFleet({
          definitions,
          log,
          onOnlyOurs: (name) =>
            engine?.requestAgain(name, "the last worker of another version has gone"),
        }),
      },
    );
    const started = await startEngine({
      controllers: config.controllers,
      use: config.use,
      client,
      lanes,
      history,
      runs: () => createRunStarter(runner.runs()),
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
      role: settings.role,
      log,
      metrics,
      ...defined({ tracing }),
      ratePerSecond: { ...DEFAULT_GUARD_LIMITS, ...clusterLimits(cluster) }.ratePerSecond,
      conflictRetry: settings.conflictRetry,
      ...defined({ concurrency: settings.concurrency }),
      onWorkable: (listener) => guard.onWorkable(listener),
      onForbidden: atMostEvery(FORBIDDEN_AGAIN_MS, async (error) => {
        log.error({ err: await explain(error) }, "Kubernetes permissions missing");
      }),
      installation: prefix,
      leaseNamespace: settings.leaseNamespace,
      election: electionTimes(settings.leaseDuration),
      release,
    });
    engine = started;
    for (const { name } of config.workflows) {
      metrics.observeRuns(name, { counts: () => runner.runs().counts(name) });
    }
    runner.work({
      workflows: settings.role === "watch" ? [] : config.workflows,
      clusters,
      observer: metrics,
      workerId,
      ...defined({ concurrency: settings.concurrency }),
    });
    if (settings.role !== "work" && config.workflows.length > 0) {
      runner.watch({
        clusters,
        namespace: settings.leaseNamespace,
        name: leaseName(prefix, WAITS_LEASE),
        identity: workerId,
        ...electionTimes(settings.leaseDuration),
      });
    }
    if (settings.role !== "work") runner.schedule(config.schedules);
    log.debug(
      { workerId, role: settings.role, cluster: clusterName, server: client.server },
      "worker started",
    );
    const releasing = cleanup.move();
    let stopping: Promise<void> | undefined;
    const end = async (ended: Promise<void>) => {
      await ended;
      await releasing.disposeAsync();
      log.info({}, "worker stopped");
    };
    return {
      workerId,
      get ready() {
        return started.ready && guard.health !== "unwell";
      },
      stop({ graceMs = settings.shutdownGrace } = {}) {
        if (stopping === undefined) log.info({ graceMs }, "worker stopping");
        stopping ??= end(endAll([started.stop({ graceMs }), runner.stop({ graceMs })]));
        return stopping;
      },
      async kill() {
        log.info({}, "aborting running attempts");
        const killed = endAll([started.kill(), runner.kill()]);
        stopping ??= end(killed);
        await killed;
        await stopping;
      },
    };
  } catch (error) {
    const explained = await explain(error);
    await cleanup.disposeAsync();
    throw explained;
  }
}

async function endAll(ends: readonly Promise<void>[]): Promise<void> {
  await Promise.all(ends);
}

/** For what goes wrong at each of many tries. */
function atMostEvery(ms: number, report: (error: Error) => Promise<void>): (error: Error) => void {
  let againAtMs = -Infinity;
  return (error) => {
    if (performance.now() < againAtMs) return;
    againAtMs = performance.now() + ms;
    void report(error);
  };
}

/** client-go's proportions, 15 s : 10 s : 2 s. */
function electionTimes(leaseDurationMs: number) {
  return {
    leaseDurationMs,
    renewDeadlineMs: (leaseDurationMs * 2) / 3,
    retryPeriodMs: (leaseDurationMs * 2) / 15,
  };
}
