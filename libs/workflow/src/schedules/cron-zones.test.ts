import { describe, expect, test } from "vitest";
import { cronTimes } from "./schedule-times.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
const FROM = Date.UTC(2024, 0, 1);
const TO = Date.UTC(2031, 0, 1);
const iso = (ms: number) => new Date(ms).toISOString();

const formats = new Map<string, Intl.DateTimeFormat>();
/** The clock of a zone as `YYYY-MM-DD hh:mm`, from the tz database of the runtime. */
const clockOf = (zone: string, ms: number) => {
  const known = formats.get(zone);
  const format =
    known ??
    new Intl.DateTimeFormat("sv", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  formats.set(zone, format);
  return format.format(ms);
};
const offsetOf = (zone: string, ms: number) =>
  Date.parse(`${clockOf(zone, ms).replace(" ", "T")}Z`) - ms;

interface Shift {
  readonly zone: string;
  /** First minute with the new offset. */
  readonly atMs: number;
  readonly byMs: number;
}

/** All changes of clocks, one zone for each set of equal ones. */
const shifts = (() => {
  const found = new Map<string, Shift>();
  for (const zone of Intl.supportedValuesOf("timeZone")) {
    let before = offsetOf(zone, FROM);
    for (let ms = FROM; ms < TO; ms += 7 * DAY) {
      const after = offsetOf(zone, ms + 7 * DAY);
      if (after === before) continue;
      let [low, high] = [ms, ms + 7 * DAY];
      while (high - low > MINUTE) {
        const middle = Math.floor((low + high) / 2 / MINUTE) * MINUTE;
        if (offsetOf(zone, middle) === before) low = middle;
        else high = middle;
      }
      found.set(`${high} ${before} ${after}`, { zone, atMs: high, byMs: after - before });
      before = after;
    }
  }
  return [...found.values()];
})();

/** The rules of one year each: shifts at the same time of the day, by the same amount. */
const rules = [
  ...new Map(
    shifts.map((shift) => [`${clockOf(shift.zone, shift.atMs).slice(11)} ${shift.byMs}`, shift]),
  ).values(),
];

/** Every fifth minute of two days before and after a shift, with the clock at each. */
const minutesAround = ({ zone, atMs }: Shift) =>
  Array.from({ length: (4 * DAY) / MINUTE / 5 }, (_, n) => {
    const ms = atMs - 2 * DAY + n * 5 * MINUTE;
    return { ms, clock: clockOf(zone, ms) };
  });

function expectTimes(cron: string, { zone }: Shift, expected: readonly number[]): void {
  const [first = 0] = expected;
  const times = cronTimes(cron, zone);
  const found: number[] = [];
  for (let ms = times.next(first - 1); found.length < expected.length; ms = times.next(ms)) {
    found.push(ms);
    expect(iso(times.last(ms)), `${cron} ${zone}, last`).toBe(iso(ms));
    expect(iso(times.last(times.next(ms) - 1)), `${cron} ${zone}, last`).toBe(iso(ms));
  }
  expect(found.map(iso), `${cron} ${zone}`).toEqual(expected.map(iso));
}

test("the tz database has gaps and repetitions, at midnight and of half an hour", () => {
  expect(new Set(shifts.map(({ byMs }) => byMs / MINUTE))).toEqual(
    new Set([-60, 60, -30, 30, -120, 120]),
  );
  const skipsMidnight = shifts.filter(
    ({ zone, atMs, byMs }) => byMs > 0 && clockOf(zone, atMs).endsWith("01:00"),
  );
  expect(skipsMidnight.length).toBeGreaterThan(3);
});

describe.each(rules.map((shift) => [shift.zone, iso(shift.atMs), shift] as const))(
  "%s at %s",
  (_zone, _at, shift) => {
    const minutes = minutesAround(shift);
    const dates = [...new Set(minutes.map(({ clock }) => clock.slice(0, 10)))].slice(1, -1);

    test("daily schedules run once a day: at the first moment that shows their time or a later one", () => {
      for (let half = 0; half < 48; half += 1) {
        const [hour, minute] = [Math.floor(half / 2), (half % 2) * 30];
        const time = [hour, minute].map((part) => String(part).padStart(2, "0")).join(":");
        const expected = dates.map(
          (date) => minutes.find(({ clock }) => clock >= `${date} ${time}`)?.ms ?? 0,
        );
        expectTimes(`${minute} ${hour} * * *`, shift, expected);
      }
    });

    test("a schedule of every quarter of an hour continues in real time", () => {
      const near = minutes.filter(({ ms }) => Math.abs(ms - shift.atMs) < 4 * 60 * MINUTE);
      const expected = near.map(({ ms }) => ms).filter((ms) => ms % (15 * MINUTE) === 0);
      expectTimes("*/15 * * * *", shift, expected);
    });
  },
);

test("a daily schedule runs once a day at every shift of every zone", () => {
  for (const shift of shifts) {
    const date = clockOf(shift.zone, shift.atMs).slice(0, 10);
    for (const hour of [0, 2, 23]) {
      const times = cronTimes(`0 ${hour} * * *`, shift.zone);
      const days: string[] = [];
      for (let ms = times.next(shift.atMs - 3 * DAY); days.length < 5; ms = times.next(ms)) {
        days.push(clockOf(shift.zone, ms + (hour === 23 ? -MINUTE * 61 : 0)).slice(0, 10));
      }
      const context = `0 ${hour} ${shift.zone} ${date}`;
      expect(new Set(days).size, context).toBe(5);
      const [first, last = ""] = [days[0] ?? "", days.at(-1)];
      const span = (Date.parse(last) - Date.parse(first)) / DAY;
      expect(span, context).toBe(4);
    }
  }
});
