import { expect, test } from "vitest";
import { playPauses } from "./pausing-runs.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const size = isLongRun ? { runs: 300, pauses: 10, kills: 12 } : { runs: 40, pauses: 3, kills: 2 };

test(`no body begins in a paused run, and resumed runs match their prediction (KONVERGE_TEST_SEED=${seed})`, async () => {
  expect((await playPauses({ seed, ...size })).wrong).toEqual([]);
});

test("a test build that claims paused runs begins bodies in a pause", async () => {
  const { wrong } = await playPauses({ seed, runs: 25, pauses: 3, kills: 0, patch: "pause" });
  expect(wrong).toContainEqual(expect.stringContaining("during a pause"));
});
