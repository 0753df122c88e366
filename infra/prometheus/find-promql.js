import { join } from "node:path";
import { findGoProgram } from "../host/go-program.js";

/**
 * Finds the program of promql/, which evaluates expressions with Prometheus' own engine; built with `CI=true` or
 * `build`: half a minute, 10 MB, once.
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the program, or why there is none
 */
export function findPromql(options = {}) {
  return findGoProgram({ name: "promql", folder: join(import.meta.dirname, "promql") }, options);
}
