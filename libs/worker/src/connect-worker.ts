import {
  bindCluster,
  createControllerRegistry,
  createHistoryWriter,
  type AnnouncedWorkflow,
  type ControllerRegistry,
  type HistoryWriter,
} from "@konverge/queue";
import { codecName, defined } from "@konverge/core";
import type { OpenLimits } from "@konverge/guard";
import { createObjectLanes, type ObjectLanes } from "@konverge/lanes";
import { checkRedis } from "@konverge/redis";
import {
  connectCluster,
  identityNamespace,
  readClusterUid,
  type ClusterConnection,
} from "./connect-cluster.ts";
import { onceAdmitted } from "./once-admitted.ts";
import { onceAnswered } from "./once-answered.ts";
import { openClusters, type OpenClusters } from "./open-clusters.ts";
import { createWorkflowRunner, type WorkflowRunner } from "./run-workflows.ts";
import { startLimits } from "./start-limits.ts";
import type { WorkerSetup } from "./worker-setup.ts";

const BYTES_PER_MIB = 1_048_576;

/** What a worker uses of Redis and its API servers. */
export interface WorkerConnections {
  readonly home: ClusterConnection;
  /** All clusters of the configuration. */
  readonly clusters: OpenClusters;
  readonly registry: ControllerRegistry;
  readonly lanes: ObjectLanes;
  readonly history: HistoryWriter;
  readonly runner: WorkflowRunner;
  /** Undefined without limits in the configuration. */
  readonly limits: OpenLimits | undefined;
}

/** Connects the cluster that the worker serves; no call is sent. @throws KonvergeError `redis_unavailable`, `redis_unsupported` */
export async function connectHome(setup: WorkerSetup): Promise<ClusterConnection> {
  const { cluster, place, options } = setup;
  const { settings, log, kubeconfigText, kubeConfig } = options;
  const facts = await onceAnswered(() => checkRedis(place.redis), reportLate(setup));
  for (const warning of facts.warnings) log.warn({ warning }, "redis warning");
  const home = await connectCluster(connectorOf(setup), {
    name: place.cluster,
    cluster,
    kubeconfigText,
    kubeConfig,
    context: cluster.context ?? settings.context,
    namespaces: setup.namespaces,
  });
  setup.atEnd("connections to the cluster", () => home.close());
  return home;
}

/** Binds the cluster in Redis and announces the controllers and workflows, before any work is taken. */
export async function connectWorker(
  setup: WorkerSetup,
  home: ClusterConnection,
): Promise<WorkerConnections> {
  const { config, place, shards, options } = setup;
  const { log, kubeconfigText } = options;
  const { client } = home;
  const uid = await onceAdmitted(
    () => readClusterUid(client, identityNamespace(setup.namespaces, options.settings)),
    (error) => log.warn({ err: error }, "waiting for the API server"),
  );
  const binding = { uid, shards };
  await onceAnswered(() => bindCluster({ ...place, ...binding }), reportLate(setup));
  const clusters = openClusters({
    home: { name: place.cluster, client, uid, namespaces: setup.namespaces },
    clusters: config.clusters,
    kubeconfigText,
    connector: connectorOf(setup),
  });
  setup.atEnd("connections to other clusters", () => clusters.close());
  const registry = createControllerRegistry({
    ...place,
    binding,
    onError: (error) => log.warn({ err: error }, "registry error"),
  });
  setup.atEnd("the entry in the list of workers", () => registry.close());
  await onceAnswered(
    () => registry.announce(announcedControllers(setup), announcedWorkflows(setup)),
    reportLate(setup),
  );
  const stores = openStores(setup);
  const limits = startLimits(setup, stores.runner.runs);
  if (limits !== undefined) await onceAnswered(() => limits.configure(), reportLate(setup));
  return { home, clusters, registry, limits, ...stores };
}

function reportLate({ options }: WorkerSetup): (error: Error) => void {
  return (error) => options.log.warn({ err: error }, "waiting for Redis");
}

/** In the order in which they open; they close in reverse. */
function openStores(setup: WorkerSetup): Pick<WorkerConnections, "lanes" | "history" | "runner"> {
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
    queues: {
      ...place,
      shards,
      retentionMs: settings.runRetention,
      ...defined({ codec: config.codec, tracing }),
    },
    log,
    release: shutdown,
  });
  setup.atEnd("connections of the workflows", () => runner.close());
  return { lanes, history, runner };
}

function connectorOf({ options, workerId }: WorkerSetup) {
  const { settings, version, log, metrics, env } = options;
  return { settings, version, workerId, log, metrics, env };
}

function announcedWorkflows({ config }: WorkerSetup): readonly AnnouncedWorkflow[] {
  const codec = config.codec && codecName(config.codec);
  return config.workflows.map(({ name, version }) => ({ name, version, ...defined({ codec }) }));
}

function announcedControllers({ config, place }: WorkerSetup) {
  return config.controllers.map(({ name, for: type }) => ({
    name,
    cluster: place.cluster,
    group: type.group,
    version: type.version,
    kind: type.kind,
    resource: type.resource,
    scope: type.scope,
  }));
}
