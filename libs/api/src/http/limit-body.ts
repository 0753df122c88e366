import { KonvergeError } from "@konverge/core";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";

/** Refuses a body that is larger, also one that does not say so at its beginning. */
export function limitBody(maxKiB: number): MiddlewareHandler {
  const refuse = () => {
    throw new KonvergeError("body_too_large", `the body is larger than ${maxKiB} KiB`);
  };
  const limitStream = bodyLimit({ maxSize: maxKiB * 1_024, onError: refuse });
  return async (context, next) => {
    const { req } = context;
    const length = req.header("content-length");
    // To look at a body's stream costs more than all else that is done with a small one, and Node reads no more than was said.
    if (length === undefined || req.header("transfer-encoding") !== undefined) {
      return await limitStream(context, next);
    }
    if (!(Number(length) <= maxKiB * 1_024)) refuse();
    return await next();
  };
}
