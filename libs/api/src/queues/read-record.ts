import { defined } from "@konverge/core";
import { attemptRecordSchema, lostRecordSchema, type AttemptRecord } from "@konverge/records";
import type { StoredAttempt } from "@konverge/queue";

/**
 * Returns the record of the engine, or the data of the queue if there is none, for example after the worker died or without
 * the engine.
 */
export function readRecord(key: string, controller: string, stored: StoredAttempt): AttemptRecord {
  const text: unknown = stored.record === "" ? undefined : JSON.parse(stored.record);
  const kept = attemptRecordSchema.safeParse(text);
  if (kept.success) return kept.data;
  const { id, outcome, worker, startedAtMs, endedAtMs, error } = stored;
  const lost = lostRecordSchema.safeParse(text).data;
  const requestedAtMs = lost?.requestedAtMs ?? startedAtMs;
  return {
    id: `${key}#${id}`,
    key,
    epoch: Number(id),
    controller,
    attempt: lost?.attempt ?? 1,
    worker,
    triggers: lost?.triggers ?? [],
    requestedAt: new Date(requestedAtMs).toISOString(),
    startedAt: new Date(startedAtMs).toISOString(),
    finishedAt: new Date(endedAtMs).toISOString(),
    durationMs: Math.max(0, endedAtMs - startedAtMs),
    waits: {
      queueMs: Math.max(0, startedAtMs - requestedAtMs),
      rateLimitMs: 0,
      laneMs: 0,
      conflictMs: 0,
      backoffMs: 0,
    },
    outcome,
    ...defined({ error }),
    writes: [],
    conflicts: [],
    calls: { count: 0, durationMs: 0 },
    ...defined({ log: lost?.log }),
  };
}
