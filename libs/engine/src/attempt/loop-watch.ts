import type { ObjectKey } from "@konverge/core";
import type { Log } from "../define/log.ts";

/** Sees when this process's event loop stands still: a handler that computes without a break stops all others, and their leases. */
export interface LoopWatch {
  /** Call at an attempt's end; answers for how long the loop stood still while it ran, in ms. */
  began(key: ObjectKey): { ended(): number };
  stop(): void;
}

const TICK_MS = 250;
/** Shorter ones are daily life: garbage collection, a large object. */
const REPORTED_MS = 1_000;
const MAX_NAMED = 5;

export function watchLoop(log: Log, clock: () => number = () => performance.now()): LoopWatch {
  const running = new Set<ObjectKey>();
  /** Ended before the tick that would have told of them: who blocks the loop often ends before any timer runs. */
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
