import { expect, test } from "vitest";
import { cronTimes, everyTimes, type ScheduleTimes } from "./schedule-times.ts";

const at = (text: string) => Date.parse(text);
const iso = (ms: number) => new Date(ms).toISOString();
/** The times in a span, forwards; each of them is also the last one until the next. */
const between = (times: ScheduleTimes, from: string, to: string) => {
  const found: string[] = [];
  for (let ms = times.next(at(from)); ms < at(to); ms = times.next(ms)) {
    found.push(iso(ms));
    expect(iso(times.last(ms))).toBe(iso(ms));
    expect(iso(times.last(times.next(ms) - 1))).toBe(iso(ms));
  }
  return found;
};

test("counts intervals from 1970", () => {
  const times = everyTimes(90 * 60_000);
  expect(between(times, "2026-11-21T00:00:00Z", "2026-11-21T04:00:00Z")).toEqual([
    "2026-11-21T01:30:00.000Z",
    "2026-11-21T03:00:00.000Z",
  ]);
  expect(() => everyTimes(999)).toThrow("at least 1s");
});

test("delays a time skipped by the clock to the end of the gap, and does not repeat a repeated one", () => {
  const times = cronTimes("30 2 * * *", "Europe/Berlin");
  expect(between(times, "2026-03-28T12:00:00Z", "2026-03-31T12:00:00Z")).toEqual([
    "2026-03-29T01:00:00.000Z",
    "2026-03-30T00:30:00.000Z",
    "2026-03-31T00:30:00.000Z",
  ]);
  expect(between(times, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z")).toEqual([
    "2026-10-25T00:30:00.000Z",
    "2026-10-26T01:30:00.000Z",
  ]);
});

test("uses each of several times in a repeated hour once", () => {
  const times = cronTimes("*/20 2 * * *", "Europe/Berlin");
  expect(between(times, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z")).toEqual([
    "2026-10-25T00:00:00.000Z",
    "2026-10-25T00:20:00.000Z",
    "2026-10-25T00:40:00.000Z",
  ]);
});

test.each(["*/15 * * * *", "0 3 * * MON", "@daily", "*/10 * * * * *", "0 0 1 * *"])(
  "%s: the last time is the one before the next",
  (cron) => {
    const times = cronTimes(cron, "America/New_York");
    for (let n = 0; n < 30; n += 1) {
      const ms = at("2026-01-01T00:00:00Z") + Math.floor(n * 7.3 * 86_400_000);
      const last = times.last(ms);
      expect(last).toBeLessThanOrEqual(ms);
      expect(times.next(last)).toBeGreaterThan(ms);
      expect(times.next(last)).toBe(times.next(ms));
    }
  },
);

test.each([
  ["", "UTC", "five fields"],
  ["* * *", "UTC", "five fields"],
  ["61 * * * *", "UTC", "got value 61"],
  ["0 0 31 2 *", "UTC", "day of month"],
  ["0 3 * * *", "Europe/Nowhere", "Europe/Nowhere"],
])("refuses %j in %s", (cron, timeZone, message) => {
  expect(() => cronTimes(cron, timeZone)).toThrow(message);
});
