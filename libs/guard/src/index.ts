export { createGuard } from "./create-guard.ts";
export type { Guard, GuardEvent, GuardOptions } from "./create-guard.ts";
export type { GuardView } from "./guard-view.ts";
export type { Order, Transition } from "./guard-store.ts";
export type { Health } from "./local-health.ts";
export type { RedisTarget } from "./redis-connection.ts";
export type { BreakerNews } from "./breaker-view.ts";
export { openGuardControl } from "./guard-control.ts";
export type { GuardControl } from "./guard-control.ts";
