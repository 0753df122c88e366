export { createApi } from "./create-api.ts";
export type { ApiOptions } from "./create-api.ts";
export { openQueueAccess } from "./queue-access.ts";
export type { QueueAccess, QueueAccessOptions } from "./queue-access.ts";
export { startApi } from "./start-api.ts";
export type { RunningApi } from "./start-api.ts";
