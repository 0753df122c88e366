import { KonvergeError } from "@konverge/core";
import type { Context, Hono, NotFoundHandler } from "hono";
import type { ApiEnv } from "../access/authenticate.ts";
import { answerProblem } from "./problem.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Answers what no route took: 405 with `Allow` where another method would have been served, else 404. */
export function answerUnserved(app: Hono<ApiEnv>): NotFoundHandler<ApiEnv> {
  return (context) => {
    const { method, path } = context.req;
    const allowed = METHODS.filter((other) => isServed(app, other, path));
    // A route of this method that has nothing there, such as a file, is no question of the method.
    if (allowed.length === 0 || allowed.some((other) => other === method)) {
      const detail = `${method} ${path} is not served here`;
      return answerProblem(context, new KonvergeError("route_not_found", detail));
    }
    return answerMethod(context, allowed);
  };
}

/** 405 with the header that names the methods that would have been served. */
export function answerMethod(context: Context, allowed: readonly string[]): Response {
  const { method, path } = context.req;
  const list = allowed.join(", ");
  const detail = `${path} is served for ${list}, not for ${method}`;
  const response = answerProblem(context, new KonvergeError("method_not_allowed", detail));
  response.headers.set("allow", list);
  return response;
}

/** Middleware is registered for all methods, routes for one. */
function isServed(app: Hono<ApiEnv>, method: string, path: string): boolean {
  return app.router.match(method, path)[0].some(([[, route]]) => route.method === method);
}
