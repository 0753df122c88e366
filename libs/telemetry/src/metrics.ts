import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { createAuditMetrics, type ObserveAuditStream } from "./audit-metrics.ts";
import { createClusterMetrics, type ObserveClusters } from "./cluster-metrics.ts";
import { createServerMetrics, type ObserveServer } from "./server-metrics.ts";
import { createWorkerMetrics, type WorkerMetrics } from "./worker-metrics.ts";
import { createGuardMetrics, type ObserveGuard } from "./guard-metrics.ts";
import { createLimitMetrics, type ObserveLimits } from "./limit-metrics.ts";
import { forgetCluster } from "./forget-cluster.ts";
import { createHttpApiMetrics, type RejectionCode } from "./http-api-metrics.ts";
import { createDeliveryMetrics, type ReceivedDelivery } from "./delivery-metrics.ts";
import { createHistoryMetrics, type HistoryMetrics } from "./history-metrics.ts";
import { createMutationMetrics, type MutationMetrics } from "./mutation-metrics.ts";
import { createNotificationMetrics, type NotificationMetrics } from "./notification-metrics.ts";
import { createReconcileMetrics, type ReconcileMetrics } from "./reconcile-metrics.ts";
import { createRequestMetrics, type RequestMetrics } from "./request-metrics.ts";
import { createRunMetrics, type RunMetrics } from "./run-metrics.ts";
import { createSourceMetrics, type SourceMetrics } from "./source-metrics.ts";
import { createRestClientMetrics, type ApiCallMetrics } from "./rest-client-metrics.ts";

/** The metrics of one cluster. All clusters of a process share their series, which have the label `cluster`. */
export interface Metrics
  extends
    ReconcileMetrics,
    RequestMetrics,
    SourceMetrics,
    HistoryMetrics,
    MutationMetrics,
    NotificationMetrics,
    RunMetrics,
    WorkerMetrics {
  /** Returns the metrics of another cluster of the process. */
  ofCluster(name: string): Metrics;
  /** Removes the series of a cluster that the process no longer serves. */
  forgetCluster(name: string): Promise<void>;
  readonly contentType: string;
  /** Counts one API call. */
  apiCall(call: ApiCallMetrics): void;
  /** Counts one rejected request to the HTTP API. */
  rejectedRequest(code: RejectionCode): void;
  /** Counts one delivery to an inbound source. */
  receivedDelivery(delivery: ReceivedDelivery): void;
  readonly observeAuditStream: ObserveAuditStream;
  readonly observeGuard: ObserveGuard;
  readonly observeLimits: ObserveLimits;
  readonly observeClusters: ObserveClusters;
  readonly observeServer: ObserveServer;
  /** The text that Prometheus reads. */
  text(): Promise<string>;
}

export interface MetricsOptions {
  readonly version: string;
  /** The prefix of the installation in Redis: the label `installation` of every series. Default `konverge`. */
  readonly installation?: string;
  /** Adds prom-client's process metrics: memory, CPU, event loop. Only for Konverge's own processes. Default false. */
  readonly ofProcess?: boolean;
}

/** The name of a cluster without a name, as in the settings. */
const DEFAULT_CLUSTER = "default";

/**
 * The metrics of one process, in a separate registry. Names and labels are those of controller-runtime and client-go with the
 * prefix `konverge_` (docs/metrics.md maps them). No label has the name of an object. The result is
 * that of the cluster `default`.
 */
export function createMetrics({
  version,
  installation = "konverge",
  ofProcess = false,
}: MetricsOptions): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ installation });
  if (ofProcess) collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "konverge_build_info",
    help: "Always 1; the version is the label.",
    labelNames: ["version"],
    registers: [registry],
  }).set({ version }, 1);
  const ofReconciles = createReconcileMetrics(registry);
  const ofRequests = createRequestMetrics(registry);
  const ofSources = createSourceMetrics(registry);
  const ofHistory = createHistoryMetrics(registry);
  const ofMutations = createMutationMetrics(registry);
  const ofNotifications = createNotificationMetrics(registry);
  const ofRuns = createRunMetrics(registry);
  const ofWorkers = createWorkerMetrics(registry, version);
  const ofCalls = createRestClientMetrics(registry);
  const ofLimits = createLimitMetrics(registry);
  const ofServers = createServerMetrics(registry);
  const shared = {
    rejectedRequest: createHttpApiMetrics(registry),
    receivedDelivery: createDeliveryMetrics(registry),
    observeAuditStream: createAuditMetrics(registry),
    observeGuard: createGuardMetrics(registry),
    observeClusters: createClusterMetrics(registry),
    forgetCluster(name: string) {
      ofReconciles(name).forgetControllers();
      return forgetCluster(registry, name);
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
  const ofCluster = (cluster: string): Metrics => ({
    ...shared,
    ...ofReconciles(cluster),
    ...ofRequests(cluster),
    ...ofSources(cluster),
    ...ofHistory(cluster),
    ...ofMutations(cluster),
    ...ofNotifications(cluster),
    ...ofRuns(cluster),
    ...ofWorkers(cluster),
    apiCall: ofCalls(cluster),
    observeLimits: ofLimits(cluster),
    observeServer: ofServers(cluster),
    ofCluster,
  });
  return ofCluster(DEFAULT_CLUSTER);
}
