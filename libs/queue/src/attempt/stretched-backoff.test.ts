import { failureBackoff } from "@konverge/core";
import { expect, test } from "vitest";
import { createStretchedBackoff } from "./stretched-backoff.ts";

test.each([
  [10, 30_000],
  [1_500, 30_000],
  [2_000, 40_000],
  [10_000, 200_000],
  [1_000_000, 1_000_000],
])("with %d keys that fail and 100 retries a second the cap is %d ms", async (waiting, capMs) => {
  const policy = createStretchedBackoff({
    policy: failureBackoff,
    perSecond: 100,
    countWaiting: async () => waiting,
    onError: () => undefined,
  });
  expect(policy().capMs).toBe(30_000);
  await Promise.resolve();
  expect(policy()).toEqual({ ...failureBackoff, capMs });
});

test("reads the number at most once per second and keeps it if a read fails", async () => {
  let nowMs = 0;
  let reads = 0;
  const errors: Error[] = [];
  const policy = createStretchedBackoff({
    policy: failureBackoff,
    perSecond: 100,
    countWaiting: async () => {
      reads += 1;
      if (reads > 1) throw new Error("away");
      return 5_000;
    },
    onError: (error) => errors.push(error),
    clock: () => nowMs,
  });
  policy();
  await Promise.resolve();
  nowMs = 999;
  policy();
  expect(reads).toBe(1);
  nowMs = 1_000;
  policy();
  await Promise.resolve();
  expect(reads).toBe(2);
  expect(errors).toHaveLength(1);
  expect(policy().capMs).toBe(100_000);
});
