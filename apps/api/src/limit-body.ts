import { KonvergeError } from "@konverge/core";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";

/** Refuses a body that is larger, also one that does not say so at its beginning. */
export function limitBody(maxKiB: number): MiddlewareHandler {
  return bodyLimit({
    maxSize: maxKiB * 1_024,
    onError: () => {
      throw new KonvergeError("body_too_large", `the body is larger than ${maxKiB} KiB`);
    },
  });
}
