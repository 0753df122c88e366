/** What `npm run check` runs: the static checks and the unit tests, all of them, so that one run shows everything that is wrong. */
import { runChecks, STATIC_CHECKS } from "./runner/static-checks.ts";

const verdicts = runChecks([...STATIC_CHECKS, "test:unit"]);
const failed = verdicts.filter(({ state }) => state === "failed").map(({ name }) => name);
console.log(failed.length === 0 ? "check: clean" : `check: failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
