import { expect, test } from "vitest";
import { createRate } from "./load-report.ts";

test("counts what ended within the last minute", () => {
  const rate = createRate();
  const at = (seconds: number, count: number) => rate(count, seconds * 1_000);
  expect(at(0, 0)).toBe(0);
  // A new worker has no full minute yet: what ended so far counts.
  expect(at(5, 10)).toBe(10);
  expect(at(60, 120)).toBe(120);
  expect(at(65, 125)).toBe(115);
  expect(at(125, 125)).toBe(0);
  // After a pause of the process, the rate covers the whole pause.
  expect(at(365, 525)).toBe(100);
});
