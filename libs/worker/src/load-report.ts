import { monitorEventLoopDelay } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import type { Engine } from "@konverge/engine";
import type { Guard } from "@konverge/guard";
import type { AnnouncedLoad } from "@konverge/queue";

const NS_PER_MS = 1e6;
/** Resolution of the histogram, in ms: a timer is late by up to this much in an idle process. */
const RESOLUTION_MS = 20;
/** Shorter than a heartbeat. The clusters of a process share the measurement. */
const MEASURED_MS = 4_000;

export interface LoadReportOptions {
  readonly slots: () => Engine["slots"];
  readonly guard: Pick<Guard, "counts" | "waitingByClass" | "inFlight">;
}

/** Returns the function that measures the load of this process. */
export function createLoadReport({ slots, guard }: LoadReportOptions): () => AnnouncedLoad {
  measureDelay();
  return () => {
    const { permits, deferred } = guard.counts;
    const { rss, heapUsed } = process.memoryUsage();
    return {
      slots: slots(),
      memoryBytes: rss,
      heapBytes: heapUsed,
      heapLimitBytes: getHeapStatistics().heap_size_limit,
      eventLoopDelayMs: measureDelay(),
      calls: {
        admitted: permits,
        deferred,
        waiting: guard.waitingByClass,
        inFlight: guard.inFlight,
      },
    };
  };
}

let delays: ReturnType<typeof monitorEventLoopDelay> | undefined;
let measuredAtMs = 0;
let lastDelayMs = 0;

/** Returns the 99th percentile of the delay of timers since the measurement before. */
function measureDelay(): number {
  const nowMs = performance.now();
  if (delays === undefined) {
    // Its timer does not keep the process alive.
    delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    delays.enable();
    measuredAtMs = nowMs;
  }
  if (nowMs - measuredAtMs >= MEASURED_MS) {
    lastDelayMs = Math.max(0, Math.round(delays.percentile(99) / NS_PER_MS - RESOLUTION_MS));
    delays.reset();
    measuredAtMs = nowMs;
  }
  return lastDelayMs;
}
