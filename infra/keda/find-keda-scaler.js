import { join } from "node:path";
import { findGoProgram } from "../host/go-program.js";

/** Equal to the version in scaler/go.mod; a test compares them. */
export const KEDA_VERSION = "v2.21.0";

/**
 * Finds the program of scaler/, which answers triggers with the scalers of KEDA; built with `CI=true` or `build`: four
 * minutes on one core, 1 GB of modules, 55 MB, once. All scalers of KEDA together need 4 GB of modules.
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the program, or why there is none
 */
export function findKedaScaler(options = {}) {
  return findGoProgram(
    {
      name: "keda-scaler",
      folder: join(import.meta.dirname, "scaler"),
      trimmed: {
        path: "github.com/kedacore/keda/v2",
        version: KEDA_VERSION,
        sum: "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        folder: "pkg/scalers",
        files: [
          "scaler.go",
          "prometheus_scaler.go",
          "metrics_api_scaler.go",
          // It has a constant of the others.
          "azure_queue_scaler.go",
        ],
      },
    },
    options,
  );
}
