import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startLongTimer } from "./long-timer.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const DAY_MS = 86_400_000;

test.each([0, 1, 30 * DAY_MS, 400 * DAY_MS])("fires once after %d ms, not earlier", (ms) => {
  let fired = 0;
  startLongTimer(ms, () => (fired += 1));
  vi.advanceTimersByTime(Math.max(0, ms - 1));
  expect(fired).toBe(ms === 0 ? 1 : 0);
  vi.advanceTimersByTime(1);
  expect(fired).toBe(1);
  vi.advanceTimersByTime(400 * DAY_MS);
  expect(fired).toBe(1);
});

test("a cancelled timer does not fire, also after its first part", () => {
  let fired = 0;
  const cancel = startLongTimer(60 * DAY_MS, () => (fired += 1));
  vi.advanceTimersByTime(40 * DAY_MS);
  cancel();
  vi.advanceTimersByTime(60 * DAY_MS);
  expect(fired).toBe(0);
});
