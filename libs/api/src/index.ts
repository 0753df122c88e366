export { createApi } from "./create-api.ts";
export type { Api, ApiOptions } from "./create-api.ts";
export type { AuditLog, AuditNote } from "./kept/audit-log.ts";
export { openQueueAccess } from "./queues/queue-access.ts";
export type { QueueAccess, QueueAccessOptions } from "./queues/queue-access.ts";
export { startApi } from "./start-api.ts";
export type { RunningApi } from "./start-api.ts";
export { createKubernetesReviews } from "./access/kubernetes-reviews.ts";
export type { TokenStore } from "./access/token-store.ts";
