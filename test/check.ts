/** Implements `npm run check`: runs all static checks and unit tests, so that one run shows every problem. */
import { runChecks, STATIC_CHECKS } from "./runner/static-checks.ts";

const verdicts = runChecks([...STATIC_CHECKS, "test:unit"]);
const failed = verdicts.filter(({ state }) => state === "failed").map(({ name }) => name);
console.log(failed.length === 0 ? "check: clean" : `check: failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
