import { monitorEventLoopDelay } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import type { Engine } from "@konverge/engine";
import type { Guard } from "@konverge/guard";
import type { AnnouncedLoad } from "@konverge/queue";

const NS_PER_MS = 1e6;
/** Resolution of the histogram, in ms: a timer is late by up to this much in an idle process. */
const RESOLUTION_MS = 20;

export interface LoadReportOptions {
  readonly slots: () => Engine["slots"];
  readonly guard: Pick<Guard, "counts" | "waitingByClass" | "inFlight">;
}

/** Returns the function that measures the load of this process since its last call. */
export function createLoadReport({ slots, guard }: LoadReportOptions): () => AnnouncedLoad {
  // Its timer does not keep the process alive.
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  return () => {
    const delayMs = delays.percentile(99) / NS_PER_MS - RESOLUTION_MS;
    delays.reset();
    const { permits, deferred } = guard.counts;
    const { rss, heapUsed } = process.memoryUsage();
    return {
      slots: slots(),
      memoryBytes: rss,
      heapBytes: heapUsed,
      heapLimitBytes: getHeapStatistics().heap_size_limit,
      eventLoopDelayMs: Math.max(0, Math.round(delayMs)),
      calls: {
        admitted: permits,
        deferred,
        waiting: guard.waitingByClass,
        inFlight: guard.inFlight,
      },
    };
  };
}
