import { failureLadder } from "@konverge/core";
import { expect, test } from "vitest";
import { createStretchedLadder } from "./stretched-ladder.ts";

test.each([
  [10, 30_000],
  [1_500, 30_000],
  [2_000, 40_000],
  [10_000, 200_000],
  [1_000_000, 1_000_000],
])("with %d keys that fail and 100 retries a second the cap is %d ms", async (waiting, capMs) => {
  const ladder = createStretchedLadder({
    ladder: failureLadder,
    perSecond: 100,
    countWaiting: async () => waiting,
    onError: () => undefined,
  });
  expect(ladder().capMs).toBe(30_000);
  await Promise.resolve();
  expect(ladder()).toEqual({ ...failureLadder, capMs });
});

test("the number is read at most once a second, and kept when it cannot be read", async () => {
  let nowMs = 0;
  let reads = 0;
  const errors: Error[] = [];
  const ladder = createStretchedLadder({
    ladder: failureLadder,
    perSecond: 100,
    countWaiting: async () => {
      reads += 1;
      if (reads > 1) throw new Error("away");
      return 5_000;
    },
    onError: (error) => errors.push(error),
    clock: () => nowMs,
  });
  ladder();
  await Promise.resolve();
  nowMs = 999;
  ladder();
  expect(reads).toBe(1);
  nowMs = 1_000;
  ladder();
  await Promise.resolve();
  expect(reads).toBe(2);
  expect(errors).toHaveLength(1);
  expect(ladder().capMs).toBe(100_000);
});
