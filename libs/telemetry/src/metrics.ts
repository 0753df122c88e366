import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { createClusterMetrics, type ObserveClusters } from "./cluster-metrics.ts";
import { createGuardMetrics, type ObserveGuard } from "./guard-metrics.ts";
import { createLimitMetrics, type ObserveLimits } from "./limit-metrics.ts";
import { createHttpApiMetrics, type RejectionCode } from "./http-api-metrics.ts";
import { createHistoryMetrics, type HistoryMetrics } from "./history-metrics.ts";
import { createReconcileMetrics, type ReconcileMetrics } from "./reconcile-metrics.ts";
import { createRequestMetrics, type RequestMetrics } from "./request-metrics.ts";
import { createRunMetrics, type RunMetrics } from "./run-metrics.ts";
import { createRestClientMetrics, type ApiCallMetrics } from "./rest-client-metrics.ts";

export interface Metrics extends ReconcileMetrics, RequestMetrics, HistoryMetrics, RunMetrics {
  readonly contentType: string;
  /** Counts one API call. */
  apiCall(call: ApiCallMetrics): void;
  /** Counts one rejected request to the HTTP API. */
  rejectedRequest(code: RejectionCode): void;
  readonly observeGuard: ObserveGuard;
  readonly observeLimits: ObserveLimits;
  readonly observeClusters: ObserveClusters;
  /** The text that Prometheus reads. */
  text(): Promise<string>;
}

export interface MetricsOptions {
  readonly version: string;
  /** Adds prom-client's process metrics: memory, CPU, event loop. Only for Konverge's own processes. Default false. */
  readonly ofProcess?: boolean;
}

/**
 * The metrics of one process, in a separate registry. Names and labels are those of controller-runtime and client-go with the
 * prefix `konverge_` (docs/metrics.md maps them). No label has the name of an object.
 */
export function createMetrics({ version, ofProcess = false }: MetricsOptions): Metrics {
  const registry = new Registry();
  if (ofProcess) collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "konverge_build_info",
    help: "Always 1; the version is the label.",
    labelNames: ["version"],
    registers: [registry],
  }).set({ version }, 1);
  return {
    ...createReconcileMetrics(registry),
    ...createRequestMetrics(registry),
    ...createHistoryMetrics(registry),
    ...createRunMetrics(registry),
    apiCall: createRestClientMetrics(registry),
    rejectedRequest: createHttpApiMetrics(registry),
    observeGuard: createGuardMetrics(registry),
    observeLimits: createLimitMetrics(registry),
    observeClusters: createClusterMetrics(registry),
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}
