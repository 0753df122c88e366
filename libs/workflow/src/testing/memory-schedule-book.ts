import { defined } from "@konverge/core";
import type { Schedule } from "../schedules/define-schedule.ts";
import type { ScheduleBook } from "../schedules/schedule-book.ts";
import {
  fieldOf,
  KEPT_MS,
  newestOf,
  specOf,
  viewOf,
  type ScheduleEntry,
} from "../schedules/schedule-entry.ts";

/** Stores schedules in memory, by the rules of the scripts in Redis. */
export function createMemoryScheduleBook(now: () => number): ScheduleBook {
  const entries = new Map<string, ScheduleEntry>();
  /** JSON, by name. */
  const pauses = new Map<string, string>();
  const put = (field: string, entry: ScheduleEntry, change: Partial<ScheduleEntry>) =>
    void entries.set(field, { ...entry, ...change });
  return {
    now: async () => now(),
    async look(schedule: Schedule, nowMs) {
      const { name, times } = schedule;
      const field = fieldOf(schedule);
      const known = entries.get(field)?.doneMs ?? nowMs;
      const isPaused = pauses.has(name);
      const doneMs = isPaused ? Math.max(known, nowMs) : known;
      const spec = JSON.stringify(specOf(schedule));
      const seen = { name, times: times.text, seenMs: nowMs, nextMs: times.next(nowMs) };
      entries.set(field, { ...entries.get(field), ...seen, spec, doneMs });
      return { doneMs, isPaused };
    },
    async pass(schedule, dueMs, run) {
      const field = fieldOf(schedule);
      const entry = entries.get(field);
      if (entry === undefined || entry.doneMs >= dueMs) return;
      put(field, entry, { doneMs: dueMs, ...defined({ run }) });
    },
    async list() {
      const nowMs = now();
      return newestOf([...entries]).map((entry) =>
        viewOf(entry, { nowMs, pause: pauses.get(entry.name) }),
      );
    },
    async pause(name, pause) {
      pauses.set(name, JSON.stringify(pause));
    },
    async resume(name, nowMs) {
      if (!pauses.delete(name)) return false;
      for (const [field, entry] of entries) {
        if (entry.name === name && entry.doneMs < nowMs) put(field, entry, { doneMs: nowMs });
      }
      return true;
    },
    async prune(nowMs) {
      for (const [field, { seenMs }] of entries) {
        if (seenMs < nowMs - KEPT_MS) entries.delete(field);
      }
      const kept = new Set([...entries.values()].map(({ name }) => name));
      for (const name of pauses.keys()) if (!kept.has(name)) pauses.delete(name);
    },
  };
}
