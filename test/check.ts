/**
 * Implements `npm run check`: runs all static checks and unit tests, so that one run shows every problem. With `--all`, it also
 * runs checks whose inputs have not changed since they passed.
 */
import { parseArgs } from "node:util";
import { runChecks, STATIC_CHECKS } from "./runner/static-checks.ts";

const { values } = parseArgs({ options: { all: { type: "boolean", default: false } } });
const isClean = runChecks([...STATIC_CHECKS, "test:unit"], { again: values.all });
console.log(isClean ? "check: clean" : "check: failed");
process.exitCode = isClean ? 0 : 1;
