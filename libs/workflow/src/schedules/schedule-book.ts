import { runScript, type RedisClient } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import { lookAtScheduleScript, type LookAnswer } from "../store/scripts/look-at-schedule.ts";
import { passScheduleScript } from "../store/scripts/pass-schedule.ts";
import { resumeScheduleScript } from "../store/scripts/resume-schedule.ts";
import type { Schedule } from "./define-schedule.ts";
import {
  fieldOf,
  KEPT_MS,
  newestOf,
  specOf,
  viewOf,
  type ScheduleEntry,
} from "./schedule-entry.ts";
import type { SchedulePause, ScheduleSpec, ScheduleView } from "./schedule-view.ts";

/** The shared state of a cluster's schedules. */
export interface ScheduleBook {
  /** Reads Redis's clock, so that all processes use the same time. */
  now(): Promise<number>;
  /** Stores a check. Returns up to when the schedule's times are handled; for a new schedule, now. */
  look(schedule: Schedule, nowMs: number): Promise<LookAnswer>;
  /** Marks a time as handled, by a run if it was not skipped. */
  pass(schedule: Schedule, dueMs: number, run: string | undefined): Promise<void>;
  /** Returns the known schedules by name. */
  list(): Promise<readonly (ScheduleView & ScheduleSpec)[]>;
  pause(name: string, pause: SchedulePause): Promise<void>;
  /** Returns false if the schedule was not paused. */
  resume(name: string, nowMs: number): Promise<boolean>;
  /** Removes schedules without a check for a week. */
  prune(nowMs: number): Promise<void>;
}

export function createScheduleBook(
  call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>,
  { prefix, cluster }: { readonly prefix: string; readonly cluster: string },
): ScheduleBook {
  const { schedules, schedulePauses: pauses } = runNames(prefix, cluster, "");
  const keys = { schedules, pauses };
  const now = async (): Promise<number> => {
    const [seconds, micros] = await call((redis) => redis.time());
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  };
  const entries = async (): Promise<(readonly [field: string, entry: ScheduleEntry])[]> => {
    const fields = await call((redis) => redis.hgetall(schedules));
    return Object.entries(fields).map(([field, text]) => [
      field,
      JSON.parse(text) as ScheduleEntry,
    ]);
  };
  return {
    now,
    async look(schedule, nowMs) {
      const { name, times } = schedule;
      const args = {
        field: fieldOf(schedule),
        name,
        times: times.text,
        spec: JSON.stringify(specOf(schedule)),
        nowMs,
        nextMs: times.next(nowMs),
      };
      return await call((redis) => runScript(redis, lookAtScheduleScript, { keys, args }));
    },
    async pass(schedule, dueMs, run) {
      const args = { field: fieldOf(schedule), dueMs, run: run ?? "" };
      await call((redis) => runScript(redis, passScheduleScript, { keys: { schedules }, args }));
    },
    async list() {
      const [nowMs, known, paused] = await Promise.all([
        now(),
        entries(),
        call((redis) => redis.hgetall(pauses)),
      ]);
      return newestOf(known).map((entry) => viewOf(entry, { nowMs, pause: paused[entry.name] }));
    },
    async pause(name, pause) {
      await call((redis) => redis.hset(pauses, name, JSON.stringify(pause)));
    },
    async resume(name, nowMs) {
      const args = { name, nowMs };
      return await call((redis) => runScript(redis, resumeScheduleScript, { keys, args }));
    },
    async prune(nowMs) {
      const known = await entries();
      const stale = known.filter(([, { seenMs }]) => seenMs < nowMs - KEPT_MS);
      if (stale.length === 0) return;
      await call((redis) => redis.hdel(schedules, ...stale.map(([field]) => field)));
      const kept = new Set(
        known.filter((each) => !stale.includes(each)).map(([, { name }]) => name),
      );
      const gone = stale.map(([, { name }]) => name).filter((name) => !kept.has(name));
      if (gone.length > 0) await call((redis) => redis.hdel(pauses, ...gone));
    },
  };
}
