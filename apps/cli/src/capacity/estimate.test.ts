import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BYTES_PER, estimateMemory } from "./estimate.ts";

test("the formula and its result are those of docs/production.md", () => {
  const page = readFileSync("docs/production.md", "utf8").replaceAll(/\s+/g, " ");
  const kib = (bytes: number) => `${(bytes / 1_024).toFixed(1)} KiB`;
  expect(page).toContain(`${kib(BYTES_PER.idleKey)} per idle key`);
  expect(page).toContain(`${kib(BYTES_PER.waitingKey)} per waiting key`);
  expect(page).toContain(`A run with small values needs ${kib(BYTES_PER.run)}`);
  const records = 256 * 1_048_576;
  const counts = { keys: 100_000, waiting: 100_000, liveRuns: 0, endedRuns: 0 };
  // "456 MiB with a full history": rounded in the page.
  expect(estimateMemory(counts, records).totalBytes / 1_048_576).toBeCloseTo(451, 0);
  const runs = estimateMemory({ ...counts, keys: 0, waiting: 0, endedRuns: 70_000 }, 0);
  expect(runs.totalBytes / 1_048_576).toBeCloseTo(267, 0);
});
