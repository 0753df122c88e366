import { spawnSync } from "node:child_process";
import type { Verdict } from "./tally.ts";

/**
 * The parts of `npm run check` that are not tests, by their script's name in package.json. The typed lint runs after
 * `typecheck`, because it reads the declarations that `typecheck` writes.
 */
export const STATIC_CHECKS: readonly string[] = ["format:check", "typecheck", "lint", "knip"];

/** Runs all of them, so that one run shows every problem. Their output goes to stdout. */
export function runChecks(names: readonly string[]): Verdict[] {
  return names.map((name) => {
    const started = Date.now();
    const { status } = spawnSync("npm", ["run", "--silent", name], { stdio: "inherit" });
    const state = status === 0 ? "passed" : "failed";
    console.log(`npm run ${name}: ${state} (${Date.now() - started} ms)`);
    return { name: `npm run ${name}`, state };
  });
}
