import { CronExpressionParser } from "cron-parser";

/** The times at which a schedule is due, in epoch ms. */
export interface ScheduleTimes {
  /** For users; unique for the times. */
  readonly text: string;
  /** Returns the last time up to the given one. */
  last(atMs: number): number;
  /** Returns the first time after the given one. */
  next(atMs: number): number;
}

const MIN_EVERY_MS = 1_000;
/** Longest shift of a clock. */
const SHIFT_MS = 2 * 3_600_000;

/** @throws RangeError */
export function everyTimes(everyMs: number): ScheduleTimes {
  if (!(everyMs >= MIN_EVERY_MS)) throw new RangeError("must be at least 1s");
  return {
    text: `every ${everyMs} ms`,
    last: (atMs) => Math.floor(atMs / everyMs) * everyMs,
    next: (atMs) => Math.floor(atMs / everyMs) * everyMs + everyMs,
  };
}

/** @throws Error for an invalid cron expression, RangeError for an invalid time zone */
export function cronTimes(cron: string, timeZone: string): ScheduleTimes {
  // The parser treats missing fields as stars.
  if (!cron.startsWith("@") && ![5, 6].includes(cron.trim().split(/\s+/).length)) {
    throw new RangeError(`"${cron}" must have five fields, or six with seconds in front`);
  }
  const zone = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
  const offsetAt = (atMs: number) =>
    zone.formatToParts(atMs).find(({ type }) => type === "timeZoneName")?.value;
  // An expression keeps its position, so each call has its own.
  const at = (atMs: number) =>
    CronExpressionParser.parse(cron, { currentDate: new Date(atMs), tz: timeZone });
  const next = (atMs: number) => at(atMs).next().getTime();
  const before = (atMs: number) => at(atMs).prev().getTime();
  next(0);
  return {
    text: `cron ${cron} ${timeZone}`,
    last(atMs) {
      let last = before(atMs + 1);
      // Backwards the parser returns the second of two repeated times, and skips times in a gap; forwards it does
      // neither.
      const isRepeated = offsetAt(last - SHIFT_MS) !== offsetAt(last);
      if (isRepeated) last = before(last - SHIFT_MS);
      for (let after = next(last); after <= atMs; after = next(after)) last = after;
      return last;
    },
    next,
  };
}
