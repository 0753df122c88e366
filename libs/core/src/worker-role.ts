/**
 * `watch`: can be elected leader and enqueues requests, but runs no handler. `work`: runs handlers and is never elected; watches
 * only the types that handlers list. `all`: both. A fleet always needs both: without `watch`, changes are missed; without `work`, requests
 * wait.
 */
export const WORKER_ROLES = ["watch", "work", "all"] as const;

export type WorkerRole = (typeof WORKER_ROLES)[number];
