import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { playPauses } from "./pausing-runs.ts";
import { isLongRun } from "../support/parts-of-run.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const size = isLongRun ? { runs: 300, pauses: 10, kills: 12 } : { runs: 40, pauses: 3, kills: 2 };

test(
  `no body begins in a paused run, and resumed runs match their prediction (KONVERGE_TEST_SEED=${seed})`,
  { timeout: 900_000 },
  async () => {
    expect((await playPauses({ seed, ...size })).wrong).toEqual([]);
  },
);

test(
  "a test build that claims paused runs begins bodies in a pause",
  { timeout: 900_000 },
  async () => {
    const { wrong } = await playPauses({ seed, runs: 25, pauses: 3, kills: 0, patch: "pause" });
    expect(wrong).toContainEqual(expect.stringContaining("during a pause"));
  },
);
