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

const MINUTE_MS = 60_000;

export interface LoadReportOptions {
  /** Undefined until the engine has started. */
  readonly engine: () => Pick<Engine, "slots" | "finished" | "leads"> | undefined;
  readonly guard: Pick<Guard, "counts" | "waitingByClass" | "inFlight">;
}

/** Returns the function that measures the load of this process. */
export function createLoadReport({ engine, guard }: LoadReportOptions): () => AnnouncedLoad {
  measureDelay();
  const rate = createRate();
  return () => {
    const { slots = {}, finished = 0, leads = [] } = engine() ?? {};
    const { permits, deferred } = guard.counts;
    const { rss, heapUsed } = process.memoryUsage();
    return {
      slots,
      attemptsPerMinute: rate(finished, performance.now()),
      leads,
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

/** Returns a function that takes a counter and returns its growth within the last minute. */
export function createRate(): (count: number, nowMs: number) => number {
  const samples: { readonly count: number; readonly atMs: number }[] = [];
  return (count, nowMs) => {
    samples.push({ count, atMs: nowMs });
    // One sample before the minute is kept: the growth is measured from it.
    while (samples[1] !== undefined && samples[1].atMs <= nowMs - MINUTE_MS) samples.shift();
    const { count: before, atMs } = samples[0] ?? { count, atMs: nowMs };
    const spanMs = Math.max(MINUTE_MS, nowMs - atMs);
    return Math.round(((count - before) / spanMs) * MINUTE_MS);
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
