import { KonvergeError } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";

/** Why a run accepts nothing. */
export function refusal({ workflow, id }: RunRef, why: "ended" | "missing"): KonvergeError {
  return why === "ended"
    ? new KonvergeError("run_ended", `run ${id} of "${workflow}" has ended`)
    : new KonvergeError(
        "not_found",
        `run ${id} of "${workflow}" does not exist; ended runs expire after their retention`,
      );
}
