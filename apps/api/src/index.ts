export { createApi } from "./create-api.ts";
export type { ApiOptions } from "./create-api.ts";
export { openQueueAccess } from "./queue-access.ts";
export type { QueueAccess, QueueAccessOptions } from "./queue-access.ts";
export { createQueueDesk } from "./queue-desk.ts";
export type { QueueDesk } from "./queue-desk.ts";
export { startApi } from "./start-api.ts";
export type { RunningApi } from "./start-api.ts";
