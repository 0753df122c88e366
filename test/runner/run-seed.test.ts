import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runSeed } from "./run-seed.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const isSeed = (text: string) => Number.isSafeInteger(Number(text)) && Number(text) < 2 ** 31;

test("runs of the same commit draw the same, unless a seed is given", () => {
  expect(runSeed(root, {})).toSatisfy(isSeed);
  expect(runSeed(root, {})).toBe(runSeed(root, {}));
  expect(runSeed(root, { KONVERGE_TEST_SEED: "7" })).toBe("7");
});

test("the long form, and a folder without git, draw a new seed each time", () => {
  const seeds = Array.from({ length: 4 }, () => [
    runSeed(root, { KONVERGE_TEST_LONG: "1" }),
    runSeed(tmpdir(), {}),
  ]).flat();
  expect(seeds).toSatisfy((all: readonly string[]) => all.every(isSeed));
  expect(new Set(seeds).size).toBeGreaterThan(1);
});
