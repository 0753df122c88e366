import { expect, test } from "vitest";
import { toMs, type Duration } from "./duration.ts";

test.each<[Duration, number]>([
  [0, 0],
  [1.5, 1.5],
  ["250ms", 250],
  ["1.5s", 1_500],
  ["2m", 120_000],
  ["24h", 86_400_000],
  ["36500000d", 36_500_000 * 86_400_000],
])("%s is %d ms", (duration, ms) => {
  expect(toMs(duration, "timeout")).toBe(ms);
});

test.each([
  -1,
  NaN,
  Infinity,
  1e300,
  Number.MAX_SAFE_INTEGER,
  "-1s",
  "1e9d",
  "5 m",
  "",
  "36500001d",
])("rejects %s and names the field", (duration) => {
  expect(() => toMs(duration as Duration, 'the timeout of step "a"')).toThrow(
    /^the timeout of step "a" ".*" is (not a duration|too long); write /,
  );
});
