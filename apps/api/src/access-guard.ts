import { createHash, timingSafeEqual } from "node:crypto";
import { KonvergeError } from "@konverge/core";
import type { MiddlewareHandler } from "hono";

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * With a token every request must carry it. Without one the server listens on loopback only, and a request must name a
 * loopback host, so that a web page cannot reach it through a name of its own (DNS rebinding).
 */
export function guardAccess(token: string | undefined): MiddlewareHandler {
  if (token === undefined) {
    return async ({ req }, next) => {
      const host = req.header("host") ?? "";
      if (!LOOPBACK.test(host)) {
        throw new KonvergeError(
          "forbidden",
          `without a token only loopback hosts are served, not "${host}"`,
        );
      }
      await next();
    };
  }
  const expected = digest(token);
  return async ({ req }, next) => {
    const [scheme, presented = ""] = (req.header("authorization") ?? "").split(" ", 2);
    // Digests have one length, so that the comparison tells nothing about the token.
    if (scheme?.toLowerCase() !== "bearer" || !timingSafeEqual(digest(presented), expected)) {
      throw new KonvergeError("unauthorized", "send the header `Authorization: Bearer <token>`");
    }
    await next();
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
