import { join } from "node:path";
import { findGoProgram } from "../host/go-program.js";
import { isOnPath, outputOf } from "../host/run.js";

/** Equal to the version in tool/go.mod; a test compares them. */
export const HELM_VERSION = "v3.22.0";

/** Without these a build assumes Kubernetes 1.20 and rejects the chart. */
const KUBERNETES = { Major: "1", Minor: "36" };
const LINKED = Object.entries(KUBERNETES).flatMap(([part, value]) =>
  ["pkg/lint/rules", "pkg/chartutil"].map(
    (folder) => `-X helm.sh/helm/v3/${folder}.k8sVersion${part}=${value}`,
  ),
);

/**
 * Finds Helm 3: `HELM`, PATH, an earlier build or, only with `CI=true` or `build`, a build from its Go modules: a
 * minute or two on two cores, 60 MB, once.
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the program, or why there is none
 */
export async function findHelm(options = {}) {
  const { env = process.env } = options;
  if (env.HELM) return { path: env.HELM };
  if (isOnPath("helm", env) && outputOf("helm", ["version", "--short"]).startsWith("v3.")) {
    return { path: "helm" };
  }
  return await findGoProgram(
    {
      name: "helm",
      folder: join(import.meta.dirname, "tool"),
      target: "helm.sh/helm/v3/cmd/helm",
      linkerFlags: [`-X helm.sh/helm/v3/internal/version.version=${HELM_VERSION}`, ...LINKED].join(
        " ",
      ),
    },
    options,
  );
}
