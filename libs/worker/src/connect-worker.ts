import {
  bindCluster,
  createControllerRegistry,
  createHistoryWriter,
  openRestoreWatch,
  type AnnouncedController,
  type AnnouncedSource,
  type AnnouncedWorkflow,
  type ControllerRegistry,
  type HistoryWriter,
  type RestoreWatch,
} from "@konverge/queue";
import { codecName, defined } from "@konverge/core";
import type { EventSource, Log } from "@konverge/engine";
import type { OpenLimits } from "@konverge/guard";
import type { KubeClient } from "@konverge/kube";
import { createObjectLanes, type ObjectLanes } from "@konverge/lanes";
import { checkRedis } from "@konverge/redis";
import { isClusterProvider } from "./clusters/cluster-provider.ts";
import { credentialsOf } from "./clusters/credentials-of.ts";
import { sensitiveResources } from "./config/sensitive-resources.ts";
import {
  connectCluster,
  identityNamespace,
  readClusterUid,
  type ClusterConnection,
  type ClusterConnector,
} from "./connect-cluster.ts";
import { onceAdmitted } from "./once-admitted.ts";
import { onceAnswered } from "./once-answered.ts";
import { openClusters, type OpenClusters } from "./open-clusters.ts";
import { createRestoreRecord } from "./restore-record.ts";
import { createWorkflowRunner, type WorkflowRunner } from "./run-workflows.ts";
import { startLimits } from "./start-limits.ts";
import type { WorkerSetup } from "./worker-setup.ts";

const BYTES_PER_MIB = 1_048_576;

/** What a worker uses of Redis and its API servers. */
export interface WorkerConnections {
  readonly home: ClusterConnection;
  /** Identifies the home. */
  readonly uid: string;
  /** All clusters of the configuration. */
  readonly clusters: OpenClusters;
  readonly registry: ControllerRegistry;
  readonly lanes: ObjectLanes;
  readonly history: HistoryWriter;
  readonly restore: RestoreWatch;
  readonly runner: WorkflowRunner;
  /** Undefined without limits in the configuration. */
  readonly limits: OpenLimits | undefined;
}

/** Connects the cluster that the worker serves; no call is sent. @throws KonvergeError `redis_unavailable`, `redis_unsupported` */
export async function connectHome(
  setup: WorkerSetup,
  connector: ClusterConnector = connectorOf(setup),
): Promise<ClusterConnection> {
  const { cluster, place, options, engagement } = setup;
  const { settings, log, kubeconfigText, kubeConfig } = options;
  // For a cluster of a provider, the fleet worker has checked Redis.
  if (engagement === undefined) await assertRedis(place.redis, log);
  const home = await connectCluster(connector, {
    name: place.cluster,
    cluster,
    kubeconfigText,
    kubeConfig,
    context: cluster.context ?? settings.context,
    namespaces: setup.namespaces,
    provided: engagement && credentialsOf(engagement.cluster),
  });
  setup.atEnd("connections to the cluster", () => home.close());
  return home;
}

/** Logs warnings. @throws KonvergeError `redis_unavailable`, `redis_unsupported` */
export async function assertRedis(redis: { readonly url: string }, log: Log): Promise<void> {
  const facts = await onceAnswered(() => checkRedis(redis), { onLate: reportLate(log) });
  for (const warning of facts.warnings) log.warn({ warning }, "redis warning");
}

/** Binds the cluster in Redis and announces the controllers and workflows, before any work is taken. */
export async function connectWorker(
  setup: WorkerSetup,
  home: ClusterConnection,
): Promise<WorkerConnections> {
  const { place, shards, options } = setup;
  const { log } = options;
  const { client } = home;
  const readUid = () =>
    readClusterUid(client, identityNamespace(setup.namespaces, options.settings));
  // An engagement that fails is tried again, and its state is reported.
  const uid = await (setup.engagement === undefined
    ? onceAdmitted(readUid, (error) => log.warn({ err: error }, "waiting for the API server"))
    : readUid());
  await claimCluster(setup, uid);
  const binding = { uid, shards };
  await answered(setup, () => bindCluster({ ...place, ...binding }));
  const clusters = reachClusters(setup, client);
  setup.atEnd("connections to other clusters", () => clusters.close());
  const registry = createControllerRegistry({
    ...place,
    binding,
    onError: (error) => log.warn({ err: error }, "registry error"),
    onIncompatible: (error) => setup.halt(error),
  });
  setup.atEnd("the entry in the list of workers", () => registry.close());
  await answered(setup, () =>
    registry.announce(announcedControllers(setup), announcedWorkflows(setup)),
  );
  const restore = await watchRestores(setup, client);
  const stores = openStores(setup, restore);
  const limits = startLimits(setup, stores.runner.runs);
  if (limits !== undefined) await answered(setup, () => limits.configure());
  return { home, uid, clusters, registry, limits, restore, ...stores };
}

/** One name has the cluster, so that its API server has one guard. @throws KonvergeError `duplicate_cluster` */
async function claimCluster(setup: WorkerSetup, uid: string): Promise<void> {
  const { engagement, name, options, registry } = setup;
  const { log } = options;
  const onLost =
    engagement?.onLost ??
    ((error: Error) => log.error({ err: error }, "cluster served under another name"));
  const claim = () => registry.claim({ cluster: name, uid, onLost });
  setup.claimed = await answered(setup, claim);
}

/** The clusters of the configuration, or those of the provider. */
export function reachClusters(
  setup: WorkerSetup,
  client: KubeClient,
  connector: ClusterConnector = connectorOf(setup),
): OpenClusters {
  const { config, place, namespaces, engagement, options } = setup;
  const name = place.cluster;
  if (engagement !== undefined) {
    return { ...engagement.clusters, home: name, close: () => Promise.resolve() };
  }
  const { clusters } = config;
  return openClusters({
    home: { name, client, namespaces },
    clusters: isClusterProvider(clusters) ? {} : clusters,
    kubeconfigText: options.kubeconfigText,
    connector,
    registry: setup.registry,
  });
}

/** Waits for a slow Redis, but not after the end of the engagement. */
function answered<T>({ options, engagement }: WorkerSetup, call: () => Promise<T>): Promise<T> {
  return onceAnswered(call, { onLate: reportLate(options.log), signal: engagement?.signal });
}

function reportLate(log: Log): (error: Error) => void {
  return (error) => log.warn({ err: error }, "waiting for Redis");
}

/** Compares the data in Redis with the record in the cluster, before any work is taken. */
async function watchRestores(setup: WorkerSetup, client: KubeClient): Promise<RestoreWatch> {
  const { place, shards, workerId, options } = setup;
  const { log, settings } = options;
  const record = createRestoreRecord({
    client,
    namespace: settings.leaseNamespace,
    installation: place.prefix,
    log,
  });
  const watch = openRestoreWatch({
    ...place,
    shards,
    workerId,
    toleranceMs: settings.restoreTolerance,
    record: (progress) => record.write(progress),
    onError: (error) => log.warn({ err: error }, "progress of Redis not advanced"),
    onChanged: (held) => {
      if (held.length > 0) log.error({ held }, "Redis was restored, work is held");
      else log.info({}, "restored Redis accepted");
    },
  });
  setup.atEnd("the progress of Redis", () => watch.close());
  const unobserve = options.metrics.observeRestore(() => watch.held);
  setup.atEnd("the metrics of the restore", async () => unobserve());
  const recorded = await record.read();
  await answered(setup, () => watch.start(recorded));
  return watch;
}

/** In the order in which they open; they close in reverse. */
function openStores(
  setup: WorkerSetup,
  restore: RestoreWatch,
): Pick<WorkerConnections, "lanes" | "history" | "runner"> {
  const { config, place, shards, workerId, shutdown, tracing, options } = setup;
  const { log, settings } = options;
  const lanes = createObjectLanes({
    ...place,
    processId: workerId,
    onError: (error) => log.debug({ err: error }, "object lane degraded, Redis unavailable"),
  });
  setup.atEnd("object lanes", async () => lanes.close());
  const history = createHistoryWriter({
    ...place,
    shards,
    budgetBytes: settings.historyLimitMiB * BYTES_PER_MIB,
    onError: (error) => log.debug({ err: error }, "history without Redis"),
  });
  setup.atEnd("the connection of the history", () => history.close());
  const runner = createWorkflowRunner({
    restore,
    queues: {
      ...place,
      shards,
      retentionMs: settings.runRetention,
      limitBytes: settings.runLimitMiB * BYTES_PER_MIB,
      ...defined({ codec: config.codec, tracing }),
    },
    log,
    release: shutdown,
  });
  setup.atEnd("connections of the workflows", () => runner.close());
  return { lanes, history, runner };
}

export function connectorOf({ options, workerId }: WorkerSetup): ClusterConnector {
  const { settings, version, log, metrics, env } = options;
  // Also those of controllers that do not run on this cluster: the others reach it with `kube.on`.
  const marked = sensitiveResources(options.config);
  return { settings, version, workerId, log, metrics, env, sensitiveResources: marked };
}

function announcedWorkflows({ config }: WorkerSetup): readonly AnnouncedWorkflow[] {
  const codec = config.codec && codecName(config.codec);
  return config.workflows.map(({ name, version }) => ({ name, version, ...defined({ codec }) }));
}

function announcedControllers({ config, place }: WorkerSetup): readonly AnnouncedController[] {
  return config.controllers.map(({ name, for: type, eventSources, approval, mode, slo }) => ({
    name,
    cluster: place.cluster,
    group: type.group,
    version: type.version,
    kind: type.kind,
    resource: type.resource,
    scope: type.scope,
    ...(eventSources.length === 0 ? {} : { sources: eventSources.map(announcedSource) }),
    ...(approval === undefined ? {} : { approval: true }),
    ...defined({ slo }),
    ...(mode === "observe" ? { observes: true } : {}),
  }));
}

function announcedSource(source: EventSource): AnnouncedSource {
  const { kind, name } = source;
  return kind === "inbound" ? { kind, name, inbound: source.inbound } : { kind, name };
}
