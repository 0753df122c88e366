/**
 * `watch`: stands for election and makes requests, runs no handler. `work`: runs handlers and is never elected; it watches what
 * handlers list, and nothing else. `all`: both. A fleet needs both at any time: without `watch` no change is seen, without
 * `work` requests wait.
 */
export type WorkerRole = "watch" | "work" | "all";
