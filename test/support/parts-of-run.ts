const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
export const isLongRun = process.env["KONVERGE_TEST_LONG"] === "1";

/** Returns every part in the long form. A short run has one of `share` parts, which the seed of the run selects. */
export function partsOfRun<T>(parts: readonly T[], share: number): readonly T[] {
  return isLongRun ? parts : parts.filter((_, at) => (at + seed) % share === 0);
}
