import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";

/** The parts of `npm run check` that are not tests, by their script's name in package.json. */
export const STATIC_CHECKS: readonly string[] = ["format:check", "typecheck", "lint", "knip"];

/** The checks that run at the same time. The unit tests have two workers of their own. */
const PARALLEL = 2;

export interface CheckOptions {
  /** Run checks whose inputs have not changed since they passed. Default false. */
  readonly again?: boolean;
  /** The folder of package.json and nx.json. Default: the current one. */
  readonly root?: string;
}

/** Where nx stores the hash of each file, by its time in whole seconds: two edits in one second would count as one. */
const HASHES = ".nx/workspace-data/nx_files.nxt";

/**
 * Runs scripts of package.json side by side, all of them after a failure too, so that one run shows every problem. nx.json has
 * their inputs: a script that passed with the same inputs is not run again. Output goes to stdout.
 * @returns whether all passed
 */
export function runChecks(
  names: readonly string[],
  { again = false, root = "." }: CheckOptions = {},
): boolean {
  rmSync(join(root, HASHES), { force: true });
  const { status } = spawnSync(
    "nx",
    [
      "run-many",
      `--targets=${names.join(",")}`,
      `--parallel=${PARALLEL}`,
      "--output-style=static",
      "--nxBail=false",
      ...(again ? ["--skip-nx-cache"] : []),
    ],
    { cwd: root, stdio: "inherit" },
  );
  return status === 0;
}
