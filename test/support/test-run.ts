import { randomInt } from "node:crypto";

/** The seed of this run's random tests, which print it. `npm test` sets it; see `runSeed`. */
export const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));

/** Whether this is `npm run test:long`. */
export const isLongRun = process.env["KONVERGE_TEST_LONG"] === "1";

/** Returns every part in the long form. A short run has one of `share` parts, which the seed of the run selects. */
export function partsOfRun<T>(parts: readonly T[], share: number): readonly T[] {
  return isLongRun ? parts : parts.filter((_, at) => (at + seed) % share === 0);
}
