import { join } from "node:path";
import { findGoProgram } from "../host/go-program.js";

/** The version of Kubernetes; the module in program/go.mod has the same minor and patch version, which a test compares. */
export const KUBECTL_VERSION = "v1.36.3";

const VERSION_PACKAGE = "k8s.io/component-base/version";

/**
 * Finds kubectl of one known version: an earlier build or, only with `CI=true` or `build`, a build from its Go modules:
 * a minute or two on two cores, 50 MB, once. A kubectl on PATH is not used, because its texts depend on its version.
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the program, or why there is none
 */
export async function findKubectl(options = {}) {
  const [major, minor] = KUBECTL_VERSION.slice(1).split(".");
  const values = { gitVersion: KUBECTL_VERSION, gitMajor: major, gitMinor: minor };
  const linkerFlags = Object.entries(values)
    .map(([name, value]) => `-X ${VERSION_PACKAGE}.${name}=${value}`)
    .join(" ");
  const folder = join(import.meta.dirname, "program");
  return await findGoProgram({ name: "kubectl", folder, linkerFlags }, options);
}
