export { createLogger } from "./logger.ts";
export type { LoggerOptions } from "./logger.ts";
export { createMetrics } from "./metrics.ts";
export type { AttemptMetrics, GuardMetrics, Metrics } from "./metrics.ts";
