import { expect, test } from "vitest";
import { dueTimes, type DueOptions } from "./due-times.ts";
import { cronTimes, everyTimes } from "./schedule-times.ts";

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(`2026-11-21T${text}Z`);
const iso = (ms: number) => new Date(ms).toISOString().slice(11, 19);
const hourly: DueOptions = { name: "hourly", times: cronTimes("0 * * * *", "UTC") };
const dueAt = (options: DueOptions, doneMs: number, nowMs: number) => {
  const { due, nextMs } = dueTimes(options, { doneMs, nowMs });
  return [...due.map(iso), `next ${iso(nextMs)}`];
};

test("without a catch-up only the last missed time is due", () => {
  expect(dueAt(hourly, at("02:00:00"), at("02:59:59"))).toEqual(["next 03:00:00"]);
  expect(dueAt(hourly, at("02:00:00"), at("09:30:00"))).toEqual(["09:00:00", "next 10:00:00"]);
});

test("a catch-up has every missed time of its duration, oldest first", () => {
  const options = { ...hourly, catchUpMs: 3 * HOUR };
  expect(dueAt(options, at("02:00:00"), at("09:30:00"))).toEqual([
    "07:00:00",
    "08:00:00",
    "09:00:00",
    "next 10:00:00",
  ]);
  expect(dueAt(options, at("08:00:00"), at("09:30:00"))).toEqual(["09:00:00", "next 10:00:00"]);
  expect(dueAt({ ...options, catchUpMs: 60_000 }, at("02:00:00"), at("09:30:00"))).toEqual([
    "next 10:00:00",
  ]);
});

test("a long catch-up starts 100 times a round", () => {
  const options = { name: "a", times: everyTimes(1_000), catchUpMs: HOUR };
  const nowMs = at("09:00:00");
  let doneMs = nowMs - 250_000;
  const counts: number[] = [];
  for (let nextMs = nowMs; nextMs <= nowMs;) {
    const found = dueTimes(options, { doneMs, nowMs });
    counts.push(found.due.length);
    doneMs = found.due.at(-1) ?? doneMs;
    nextMs = found.nextMs;
  }
  expect(counts).toEqual([100, 100, 50]);
  expect(doneMs).toBe(nowMs);
});

test("each time starts once, at most its jitter late, in order, and equally in all processes", () => {
  const options: DueOptions = { name: "spread", times: everyTimes(60_000), jitterMs: 90_000 };
  const fromMs = at("00:00:00");
  const started: { readonly atMs: number; readonly lateMs: number }[] = [];
  let doneMs = fromMs;
  let { nextMs } = dueTimes(options, { doneMs, nowMs: fromMs });
  while (started.length < 200) {
    const nowMs = nextMs;
    const found = dueTimes(options, { doneMs, nowMs });
    expect(found).toEqual(dueTimes(options, { doneMs, nowMs }));
    expect(found.nextMs).toBeGreaterThan(nowMs);
    for (const atMs of found.due) started.push({ atMs, lateMs: nowMs - atMs });
    doneMs = found.due.at(-1) ?? doneMs;
    nextMs = found.nextMs;
  }
  expect(started.map(({ atMs }) => atMs)).toEqual(started.map((_, n) => fromMs + (n + 1) * 60_000));
  // Never past the next time, whatever the jitter.
  const late = started.map(({ lateMs }) => lateMs);
  expect(Math.max(...late)).toBeLessThan(60_000);
  expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
  expect(new Set(late).size).toBeGreaterThan(150);
});

test("schedules with the same times have different delays", () => {
  const times = cronTimes("0 * * * *", "UTC");
  const nextOf = (name: string) =>
    dueTimes({ name, times, jitterMs: HOUR }, { doneMs: 0, nowMs: at("02:59:59") }).nextMs;
  const starts = ["a", "b", "c", "d", "e", "f"].map(nextOf);
  expect(new Set(starts).size).toBeGreaterThan(3);
});
