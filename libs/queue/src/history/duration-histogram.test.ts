import { expect, test } from "vitest";
import { durationCounter, durationQuantile } from "./duration-histogram.ts";

test("returns percentiles within a tenth of the exact value", () => {
  const durations = Array.from({ length: 1_000 }, (_, at) => (at + 1) ** 2 / 10);
  const minutes = durations.map((ms) => ({ [durationCounter(ms)]: 1, "outcome.done": 1 }));
  for (const share of [0.5, 0.95, 0.99]) {
    const exact = durations[Math.floor(durations.length * share)] ?? 0;
    const found = durationQuantile(minutes, share) ?? 0;
    expect(Math.abs(found - exact) / exact).toBeLessThanOrEqual(0.1);
  }
});

test("returns no percentile without durations", () => {
  expect(durationQuantile([], 0.5)).toBeUndefined();
  expect(durationQuantile([{ "outcome.done": 3 }], 0.5)).toBeUndefined();
});

test("counts durations of 0 ms", () => {
  expect(durationQuantile([{ [durationCounter(0)]: 2 }], 0.99)).toBe(1);
});
