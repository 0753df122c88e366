export type { GuardMetrics } from "./guard-metrics.ts";
export { createLogger } from "./logger.ts";
export type { LoggerOptions } from "./logger.ts";
export { createMetrics } from "./metrics.ts";
export type { Metrics, MetricsOptions } from "./metrics.ts";
export type { AttemptMetrics, ReconcileMetrics } from "./reconcile-metrics.ts";
export type { ObservedQueue, RequestMetrics } from "./request-metrics.ts";
export type { ApiCallMetrics } from "./rest-client-metrics.ts";
