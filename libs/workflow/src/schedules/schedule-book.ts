import { defined } from "@konverge/core";
import { runScript, type RedisClient } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import { lookAtScheduleScript } from "../store/scripts/look-at-schedule.ts";
import { passScheduleScript } from "../store/scripts/pass-schedule.ts";
import type { Schedule } from "./define-schedule.ts";

/** How a schedule stands. Times are epoch ms by Redis's clock. */
export interface ScheduleView {
  readonly name: string;
  readonly workflow: string;
  /** When it is due: `cron 0 3 * * * UTC` or `every 3600000 ms`. */
  readonly times: string;
  /** When a process last looked at it. */
  readonly seenMs: number;
  /** False once nobody looks at it any more: it starts nothing. */
  readonly isLive: boolean;
  readonly nextMs: number;
  /** Id of the run that stands for the last time. */
  readonly run?: string;
}

/** What all processes know of the schedules of a cluster. */
export interface ScheduleBook {
  /** Redis's clock, so that all processes mean the same time. */
  now(): Promise<number>;
  /** Answers up to when the times of a schedule are dealt with; of one that is new, up to now. */
  look(schedule: Schedule, nowMs: number): Promise<number>;
  /** The run stands for this time. */
  pass(schedule: Schedule, dueMs: number, run: string): Promise<void>;
  list(): Promise<ScheduleView[]>;
  /** Forgets those at which nobody has looked for a week. */
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
  // With its times: while two versions of a configuration run, each deals with its own.
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
