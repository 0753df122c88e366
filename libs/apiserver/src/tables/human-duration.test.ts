import { expect, test } from "vitest";
import { humanDuration } from "./human-duration.ts";

test.for([
  [-2_000, "<invalid>"],
  [-500, "0s"],
  [119_000, "119s"],
  [120_000, "2m"],
  [301_000, "5m1s"],
  [11 * 60_000, "11m"],
  [3 * 3_600_000 + 5 * 60_000, "3h5m"],
  [26 * 3_600_000, "26h"],
  [50 * 3_600_000, "2d2h"],
  [30 * 86_400_000, "30d"],
  [800 * 86_400_000, "2y70d"],
  [4_000 * 86_400_000, "10y"],
] as const)("formats %d ms as %s", ([ms, text]) => {
  expect(humanDuration(ms)).toBe(text);
});
