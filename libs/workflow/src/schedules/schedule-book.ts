import { defined, type ScheduleOverlap } from "@konverge/core";
import { runScript, type RedisClient } from "@konverge/redis";
import { runNames } from "../store/run-names.ts";
import { lookAtScheduleScript, type LookAnswer } from "../store/scripts/look-at-schedule.ts";
import { passScheduleScript } from "../store/scripts/pass-schedule.ts";
import { resumeScheduleScript } from "../store/scripts/resume-schedule.ts";
import type { Schedule } from "./define-schedule.ts";
import type { ScheduleRule } from "./schedule-times.ts";

/** The author, reason and time of a pause. */
export interface SchedulePause {
  readonly by?: string;
  readonly reason?: string;
  readonly atMs: number;
}

/** The part of a schedule that workers store, so that other processes can start its runs. */
export interface ScheduleSpec {
  readonly workflow: string;
  readonly version: number;
  readonly rule: ScheduleRule;
  readonly input?: unknown;
  readonly overlap: ScheduleOverlap;
  readonly catchUpMs?: number;
  readonly jitterMs?: number;
}

/** The state of a schedule. Times are epoch ms by Redis's clock. */
export interface ScheduleView extends Omit<ScheduleSpec, "version" | "rule"> {
  readonly name: string;
  /** When it is due: `cron 0 3 * * * UTC` or `every 3600000 ms`. */
  readonly times: string;
  /** Last check by a process. */
  readonly seenMs: number;
  /** False once no process checks it any more, so it starts no runs. */
  readonly isLive: boolean;
  readonly nextMs: number;
  /** Id of the run of the last time. */
  readonly run?: string;
  readonly paused?: SchedulePause;
}

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

/** Longer than two rounds. */
const LIVE_MS = 120_000;
const KEPT_MS = 7 * 86_400_000;

interface Entry extends Pick<ScheduleView, "name" | "times" | "seenMs" | "nextMs" | "run"> {
  readonly doneMs: number;
  /** JSON, because scripts would change empty lists in it. */
  readonly spec: string;
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
  const entries = async (): Promise<(readonly [field: string, entry: Entry])[]> => {
    const fields = await call((redis) => redis.hgetall(schedules));
    return Object.entries(fields).map(([field, text]) => [field, JSON.parse(text) as Entry]);
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

/** Includes its times: while two versions of a configuration run, each handles its own. */
function fieldOf({ name, times }: Schedule): string {
  return `${name} ${times.text}`;
}

function specOf({ times, workflow, input, overlap, catchUpMs, jitterMs }: Schedule): ScheduleSpec {
  const { name, version } = workflow;
  const { rule } = times;
  return {
    workflow: name,
    version,
    rule,
    ...defined({ input }),
    overlap,
    ...defined({ catchUpMs, jitterMs }),
  };
}

/** Returns the entry of each schedule that was checked last, by name. */
function newestOf(known: readonly (readonly [string, Entry])[]): readonly Entry[] {
  const newest = new Map<string, Entry>();
  for (const [, entry] of known) {
    if (entry.seenMs > (newest.get(entry.name)?.seenMs ?? 0)) newest.set(entry.name, entry);
  }
  return [...newest.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function viewOf(
  { name, times, seenMs, nextMs, run, spec }: Entry,
  { nowMs, pause }: { readonly nowMs: number; readonly pause: string | undefined },
): ScheduleView & ScheduleSpec {
  const paused = pause === undefined ? undefined : (JSON.parse(pause) as SchedulePause);
  return {
    ...(JSON.parse(spec) as ScheduleSpec),
    name,
    times,
    seenMs,
    isLive: seenMs > nowMs - LIVE_MS,
    nextMs,
    ...defined({ run, paused }),
  };
}
