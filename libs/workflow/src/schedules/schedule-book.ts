import { defined } from "@konverge/core";
import { runScript, type RedisClient } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import { lookAtScheduleScript } from "../store/scripts/look-at-schedule.ts";
import { passScheduleScript } from "../store/scripts/pass-schedule.ts";
import type { Schedule } from "./define-schedule.ts";

/** The state of a schedule. Times are epoch ms by Redis's clock. */
export interface ScheduleView {
  readonly name: string;
  readonly workflow: string;
  /** When it is due: `cron 0 3 * * * UTC` or `every 3600000 ms`. */
  readonly times: string;
  /** Last check by a process. */
  readonly seenMs: number;
  /** False once no process checks it any more, so it starts no runs. */
  readonly isLive: boolean;
  readonly nextMs: number;
  /** Id of the run of the last time. */
  readonly run?: string;
}

/** The shared state of a cluster's schedules. */
export interface ScheduleBook {
  /** Reads Redis's clock, so that all processes use the same time. */
  now(): Promise<number>;
  /** Stores a check. Returns up to when the schedule's times are handled; for a new schedule, now. */
  look(schedule: Schedule, nowMs: number): Promise<number>;
  /** Marks a time as handled by a run. */
  pass(schedule: Schedule, dueMs: number, run: string): Promise<void>;
  list(): Promise<ScheduleView[]>;
  /** Removes schedules without a check for a week. */
  prune(nowMs: number): Promise<void>;
}

/** Longer than two rounds. */
const LIVE_MS = 120_000;
const KEPT_MS = 7 * 86_400_000;

type Entry = Omit<ScheduleView, "isLive">;

export function createScheduleBook(
  call: <T>(run: (redis: RedisClient) => Promise<T>) => Promise<T>,
  { prefix, cluster }: { readonly prefix: string; readonly cluster: string },
): ScheduleBook {
  const { schedules } = runNames(prefix, cluster, "");
  // Includes its times: while two versions of a configuration run, each handles its own.
  const fieldOf = ({ name, times }: Schedule) => `${name} ${times.text}`;
  const now = async (): Promise<number> => {
    const [seconds, micros] = await call((redis) => redis.time());
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  };
  const entries = async (): Promise<(readonly [field: string, entry: Entry])[]> => {
    const fields = await call((redis) => redis.hgetall(schedules));
    return Object.entries(fields).map(([field, text]) => [field, JSON.parse(text) as Entry]);
  };
  return {
    now,
    async look(schedule, nowMs) {
      const { name, times, workflow } = schedule;
      const args = {
        field: fieldOf(schedule),
        name,
        times: times.text,
        workflow: workflow.name,
        nowMs,
        nextMs: times.next(nowMs),
      };
      return await call((redis) =>
        runScript(redis, lookAtScheduleScript, { keys: { schedules }, args }),
      );
    },
    async pass(schedule, dueMs, run) {
      const args = { field: fieldOf(schedule), dueMs, run };
      await call((redis) => runScript(redis, passScheduleScript, { keys: { schedules }, args }));
    },
    async list() {
      const [nowMs, known] = await Promise.all([now(), entries()]);
      const newest = new Map<string, Entry>();
      for (const [, entry] of known) {
        if (entry.seenMs > (newest.get(entry.name)?.seenMs ?? 0)) newest.set(entry.name, entry);
      }
      return [...newest.values()]
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, workflow, times, seenMs, nextMs, run }) => ({
          name,
          workflow,
          times,
          seenMs,
          isLive: seenMs > nowMs - LIVE_MS,
          nextMs,
          ...defined({ run }),
        }));
    },
    async prune(nowMs) {
      const stale = (await entries()).filter(([, { seenMs }]) => seenMs < nowMs - KEPT_MS);
      if (stale.length === 0) return;
      await call((redis) => redis.hdel(schedules, ...stale.map(([field]) => field)));
    },
  };
}
