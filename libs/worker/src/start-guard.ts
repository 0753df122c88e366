import { defined } from "@konverge/core";
import type { Settings } from "@konverge/contracts";
import { clusterLimits, type ClusterOptions } from "./config/cluster-options.ts";
import { type Log } from "@konverge/engine";
import { createGuard, type Guard, type GuardEvent } from "@konverge/guard";

export interface StartGuardOptions {
  readonly settings: Pick<Settings, "redisUrl" | "prefix">;
  readonly name: string;
  readonly cluster: ClusterOptions;
  readonly workerId: string;
  readonly log: Log;
  /** Makes one read call to the API server. */
  readonly probe: (signal: AbortSignal) => Promise<unknown>;
  /** The limits of other processes stay. */
  readonly keepLimits?: boolean;
}

/** Opens the guard that all workers of a cluster share. @throws KonvergeError `invalid_config`, `redis_unavailable` */
export function startGuard({
  settings,
  name,
  cluster,
  workerId,
  log,
  probe,
  keepLimits = false,
}: StartGuardOptions): Promise<Guard> {
  const { maxInFlight } = cluster;
  return createGuard({
    redis: { url: settings.redisUrl },
    prefix: settings.prefix,
    cluster: name,
    workerId,
    limits: clusterLimits(cluster),
    keepLimits,
    ...defined({ maxInFlight }),
    probe,
    onEvent: (event) => logEvent(log, event),
  });
}

/** Logs each transition once for all workers: by the worker whose report decided it. */
function logEvent(log: Log, event: GuardEvent): void {
  switch (event.kind) {
    case "transition":
      log.warn({ transition: event.transition }, "circuit breaker state changed");
      return;
    case "breaker":
      log.debug(
        { breaker: event.mode, generation: event.generation, waitMs: event.waitMs },
        "circuit breaker seen",
      );
      return;
    case "health":
      log.warn(
        { health: event.health, ...defined({ err: event.cause }) },
        "worker's API server access changed",
      );
      return;
    case "limits":
      log.warn(
        { limits: event.limits, by: event.by },
        event.ours
          ? "guard limits updated by this worker"
          : "guard limits updated by another worker",
      );
      return;
    case "error":
      log.warn({ err: event.error }, "guard error");
  }
}
