import { CronExpressionParser } from "cron-parser";

/** When a schedule is due, in epoch ms. */
export interface ScheduleTimes {
  /** As people read it; two that are due at other times have other texts. */
  readonly text: string;
  /** The last time that is not later. */
  last(atMs: number): number;
  /** The first time that is later. */
  next(atMs: number): number;
}

const MIN_EVERY_MS = 1_000;
/** No clock is put back by more. */
const SHIFT_MS = 2 * 3_600_000;

/** @throws RangeError */
export function everyTimes(everyMs: number): ScheduleTimes {
  if (!(everyMs >= MIN_EVERY_MS)) throw new RangeError("write at least 1s");
  return {
    text: `every ${everyMs} ms`,
    last: (atMs) => Math.floor(atMs / everyMs) * everyMs,
    next: (atMs) => Math.floor(atMs / everyMs) * everyMs + everyMs,
  };
}

/** @throws Error for what is no cron expression, and RangeError for what is no time zone */
export function cronTimes(cron: string, timeZone: string): ScheduleTimes {
  // The parser takes what is missing for a star.
  if (!cron.startsWith("@") && ![5, 6].includes(cron.trim().split(/\s+/).length)) {
    throw new RangeError(`"${cron}" must have five fields, or six with seconds in front`);
  }
  const zone = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
  const offsetAt = (atMs: number) =>
    zone.formatToParts(atMs).find(({ type }) => type === "timeZoneName")?.value;
  // Expressions hold a place of their own, so each question has one.
  const at = (atMs: number) =>
    CronExpressionParser.parse(cron, { currentDate: new Date(atMs), tz: timeZone });
  const next = (atMs: number) => at(atMs).next().getTime();
  const before = (atMs: number) => at(atMs).prev().getTime();
  next(0);
  return {
    text: `cron ${cron} ${timeZone}`,
    last(atMs) {
      let last = before(atMs + 1);
      // Backwards the parser takes the second of two times that a clock repeats, and leaves out what falls into a gap; forwards
      // it does neither.
      const isRepeated = offsetAt(last - SHIFT_MS) !== offsetAt(last);
      if (isRepeated) last = before(last - SHIFT_MS);
      for (let after = next(last); after <= atMs; after = next(after)) last = after;
      return last;
    },
    next,
  };
}
