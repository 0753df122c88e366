import { CronExpressionParser } from "cron-parser";
import { zoneClock } from "./zone-clock.ts";

/** A cron expression in a time zone, or an interval. */
export type ScheduleRule =
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number };

/** The times at which a schedule is due, in epoch ms. */
export interface ScheduleTimes {
  readonly rule: ScheduleRule;
  /** For users; unique for the times. */
  readonly text: string;
  /** Returns the last time up to the given one. */
  last(atMs: number): number;
  /** Returns the first time after the given one. */
  next(atMs: number): number;
}

const MIN_EVERY_MS = 1_000;

/** @throws as `cronTimes` and `everyTimes` */
export function timesOf(rule: ScheduleRule): ScheduleTimes {
  return "cron" in rule ? cronTimes(rule.cron, rule.timeZone) : everyTimes(rule.everyMs);
}

/** @throws RangeError */
export function everyTimes(everyMs: number): ScheduleTimes {
  if (!(everyMs >= MIN_EVERY_MS)) throw new RangeError("must be at least 1s");
  return {
    rule: { everyMs },
    text: `every ${everyMs} ms`,
    last: (atMs) => Math.floor(atMs / everyMs) * everyMs,
    next: (atMs) => Math.floor(atMs / everyMs) * everyMs + everyMs,
  };
}

/**
 * Returns the times of a cron expression on the clock of a zone.
 *
 * The parser computes clock times only, without a zone: it skips days, and can fail to find a time, where the clock changes. A
 * time that the clock skips is due at the first moment after the gap; a time that it shows twice, at the first. Schedules of
 * every hour are due at both.
 * @throws Error for an invalid cron expression, RangeError for an invalid time zone
 */
export function cronTimes(cron: string, timeZone: string): ScheduleTimes {
  // The parser treats missing fields as stars.
  if (!cron.startsWith("@") && ![5, 6].includes(cron.trim().split(/\s+/).length)) {
    throw new RangeError(`"${cron}" must have five fields, or six with seconds in front`);
  }
  const clock = zoneClock(timeZone);
  // An expression keeps its position, so each call has its own.
  const parse = (clockMs: number) =>
    CronExpressionParser.parse(cron, { currentDate: new Date(clockMs), tz: "UTC", hashSeed: cron });
  const after = (clockMs: number) => parse(clockMs).next().getTime();
  const upTo = (clockMs: number) =>
    parse(clockMs + 1)
      .prev()
      .getTime();
  const isOfEveryHour = parse(0).fields.hour.values.length === 24;
  after(0);

  const next = (atMs: number): number => {
    const repeat = clock.repeatAt(atMs);
    if (repeat === undefined) return clock.momentOf(after(clock.clockAt(atMs)));
    const { atMs: shiftMs, beforeMs, afterMs } = repeat;
    if (atMs < shiftMs) {
      const ms = after(atMs + beforeMs) - beforeMs;
      if (ms < shiftMs) return ms;
    }
    const fromMs = isOfEveryHour ? Math.max(atMs, shiftMs - 1) + afterMs : shiftMs + beforeMs - 1;
    const clockMs = after(fromMs);
    return clockMs < shiftMs + beforeMs ? clockMs - afterMs : clock.momentOf(clockMs);
  };
  const last = (atMs: number): number => {
    const repeat = clock.repeatAt(atMs);
    if (repeat === undefined || atMs < repeat.atMs) {
      const clockMs = upTo(clock.clockAt(atMs));
      const ms = clock.momentOf(clockMs);
      const earlier = repeat === undefined && isOfEveryHour ? clock.repeatAt(ms) : undefined;
      return earlier === undefined ? ms : clockMs - earlier.afterMs;
    }
    const { atMs: shiftMs, afterMs } = repeat;
    if (isOfEveryHour) {
      const ms = upTo(atMs + afterMs) - afterMs;
      if (ms >= shiftMs) return ms;
    }
    return last(shiftMs - 1);
  };
  return { rule: { cron, timeZone }, text: `cron ${cron} ${timeZone}`, last, next };
}
