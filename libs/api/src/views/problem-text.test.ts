import { expect, test } from "vitest";
import { trendOf } from "./problem-text.ts";

const minutes = (before: number, last: number, running: number) => [
  ...Array.from({ length: 50 }, () => 1_000),
  ...Array.from({ length: 5 }, () => before),
  ...Array.from({ length: 5 }, () => last),
  running,
];

test.each([
  [0, 1, "rising"],
  [10, 13, "rising"],
  [10, 12, "steady"],
  [10, 8, "steady"],
  [10, 7, "falling"],
  [10, 0, "falling"],
  [0, 0, "steady"],
] as const)(
  "from %i to %i per minute is %s, regardless of the current minute",
  (before, last, is) => {
    expect(trendOf(minutes(before, last, 0))).toBe(is);
    expect(trendOf(minutes(before, last, 99_999))).toBe(is);
  },
);
