import { formatTraceparent, parseTraceparent } from "@konverge/core";
import type { Context } from "hono";

/** Returns the valid trace context of a request, which is passed on even if this process has no tracing. */
export function traceparentOf({ req }: Context): string | undefined {
  const parent = parseTraceparent(req.header("traceparent") ?? "");
  return parent === undefined ? undefined : formatTraceparent(parent);
}
