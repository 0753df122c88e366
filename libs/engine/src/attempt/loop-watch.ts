import type { ObjectKey } from "@konverge/core";
import type { Log } from "../define/log.ts";

/** Detects a blocked event loop: a handler that computes without a break stops all others, and the renewal of their leases. */
export interface LoopWatch {
  /** Called at the start of an attempt. `ended` returns the time that the loop was blocked during the attempt, in ms. */
  began(key: ObjectKey): { ended(): number };
  stop(): void;
}

const TICK_MS = 250;
/** Shortest reported blocking, in ms; garbage collection or a large object can take less. */
const REPORTED_MS = 1_000;
const MAX_NAMED = 5;

export function watchLoop(log: Log, clock: () => number = () => performance.now()): LoopWatch {
  const running = new Set<ObjectKey>();
  /** Attempts that ended before the tick that would report them: a blocking handler often ends before any timer runs. */
  let suspects = new Set<ObjectKey>();
  let tickedAtMs = clock();
  let cpu = process.cpuUsage();
  let totalMs = 0;

  const standstillMs = () => {
    const overdueMs = clock() - tickedAtMs - TICK_MS;
    return overdueMs >= REPORTED_MS ? overdueMs : 0;
  };
  const timer = setInterval(() => {
    const eventLoopBlockedMs = standstillMs();
    const used = process.cpuUsage(cpu);
    tickedAtMs = clock();
    cpu = process.cpuUsage();
    const keys = [...suspects, ...running];
    suspects = new Set();
    if (eventLoopBlockedMs === 0) return;
    totalMs += eventLoopBlockedMs;
    log.warn(
      {
        eventLoopBlockedMs: Math.round(eventLoopBlockedMs),
        cpuMs: Math.round((used.user + used.system) / 1_000),
        controllers: [...new Set(keys.map(({ controller }) => controller))],
        keys: keys.slice(0, MAX_NAMED).map(({ namespace, name }) => ({ namespace, name })),
      },
      "event loop blocked",
    );
  }, TICK_MS);
  timer.unref();

  return {
    began(key) {
      const member = { ...key };
      const beforeMs = totalMs;
      running.add(member);
      return {
        ended() {
          running.delete(member);
          const nowMs = standstillMs();
          if (nowMs > 0) suspects.add(member);
          return totalMs - beforeMs + nowMs;
        },
      };
    },
    stop: () => clearInterval(timer),
  };
}
