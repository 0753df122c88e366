import { KonvergeError } from "@konverge/core";
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";

/** Rejects larger bodies, with or without a `content-length`. */
export function limitBody(maxKiB: number): MiddlewareHandler {
  const refuse = () => {
    throw new KonvergeError("body_too_large", `the body is larger than ${maxKiB} KiB`);
  };
  const limitStream = bodyLimit({ maxSize: maxKiB * 1_024, onError: refuse });
  return async (context, next) => {
    const { req } = context;
    const length = req.header("content-length");
    // Counting a stream is slow, and Node never reads more than `content-length`.
    if (length === undefined || req.header("transfer-encoding") !== undefined) {
      return await limitStream(context, next);
    }
    if (!(Number(length) <= maxKiB * 1_024)) refuse();
    return await next();
  };
}
