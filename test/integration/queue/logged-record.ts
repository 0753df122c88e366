import type { AttemptRecord } from "@konverge/records";

const AT = "2026-01-01T00:00:00.000Z";

export const logLine = (message: string) => ({ at: AT, level: "info", message }) as const;

/** The record of an attempt that did nothing but log. */
export function loggedRecord(epoch: number, messages: readonly string[]): string {
  const record: AttemptRecord = {
    id: `x#${epoch}`,
    key: "x",
    epoch,
    controller: "node-pool",
    attempt: 1,
    worker: "test",
    triggers: [],
    requestedAt: AT,
    startedAt: AT,
    finishedAt: AT,
    durationMs: 0,
    waits: { queueMs: 0, rateLimitMs: 0, laneMs: 0, conflictMs: 0, backoffMs: 0 },
    outcome: "done",
    writes: [],
    conflicts: [],
    calls: { count: 0, durationMs: 0 },
    log: messages.map(logLine),
    logOmitted: 2,
  };
  return JSON.stringify(record);
}
