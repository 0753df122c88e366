import { KonvergeError } from "@konverge/core";
import type { Reached } from "./verb-scope.ts";

/** Returns the error for an object that was deleted, and perhaps recreated, since the workflow read it. */
export function replaced({ label }: Reached, cause?: unknown): KonvergeError {
  return new KonvergeError(
    "object_replaced",
    `${label} was deleted or recreated since the workflow read it; read the current object first`,
    cause === undefined ? {} : { cause },
  );
}
