import { KonvergeError } from "@konverge/core";
import type { Reached } from "./verb-scope.ts";

/** The object that was meant is gone; whatever bears its name now is another one. */
export function replaced({ label }: Reached, cause?: unknown): KonvergeError {
  return new KonvergeError(
    "object_replaced",
    `${label} was deleted, or deleted and created again, since the workflow saw it; read what is there and decide anew`,
    cause === undefined ? {} : { cause },
  );
}
