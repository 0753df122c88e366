import { KonvergeError } from "@konverge/core";
import type { Context, Hono, NotFoundHandler } from "hono";
import type { ApiEnv } from "../access/authenticate.ts";
import { answerProblem } from "./problem.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Answers requests without a route: 405 with `Allow` if the path has other methods, else 404. */
export function answerUnserved(app: Hono<ApiEnv>): NotFoundHandler<ApiEnv> {
  return (context) => {
    const { method, path } = context.req;
    const allowed = METHODS.filter((other) => isServed(app, other, path));
    // The method has a route, but the route found nothing, such as a missing file.
    if (allowed.length === 0 || allowed.some((other) => other === method)) {
      const detail = `no route for ${method} ${path}`;
      return answerProblem(context, new KonvergeError("route_not_found", detail));
    }
    return answerMethod(context, allowed);
  };
}

/** Answers 405 and lists the allowed methods. */
export function answerMethod(context: Context, allowed: readonly string[]): Response {
  const { method, path } = context.req;
  const list = allowed.join(", ");
  const detail = `${path} allows ${list}, not ${method}`;
  const response = answerProblem(context, new KonvergeError("method_not_allowed", detail));
  response.headers.set("allow", list);
  return response;
}

/** Middleware is registered for all methods, routes for one. */
function isServed(app: Hono<ApiEnv>, method: string, path: string): boolean {
  return app.router.match(method, path)[0].some(([[, route]]) => route.method === method);
}
