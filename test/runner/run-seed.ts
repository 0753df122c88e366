import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";

/**
 * Returns the seed of a run's random tests: `KONVERGE_TEST_SEED` if set, else one that is the same for equal commits, so that a run of
 * the same code elsewhere makes the same draws. The long form and a folder without git draw a new one each time.
 */
export function runSeed(root: string, environment: NodeJS.ProcessEnv): string {
  const given = environment["KONVERGE_TEST_SEED"];
  if (given !== undefined) return given;
  const tree = spawnSync("git", ["rev-parse", "HEAD^{tree}"], { cwd: root, encoding: "utf8" });
  const isLong = environment["KONVERGE_TEST_LONG"] === "1";
  if (isLong || tree.status !== 0) return String(randomInt(2 ** 31));
  return String(Number.parseInt(tree.stdout.slice(0, 8), 16) % 2 ** 31);
}
