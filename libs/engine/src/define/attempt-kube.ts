import type { KubeCalls } from "@konverge/kube";

/** The API server for a handler: each call is bound to the attempt, rate-limited and recorded. */
export interface AttemptKube extends KubeCalls<"handler"> {}
