import { KonvergeError } from "@konverge/core";
import type { Context, Hono, NotFoundHandler } from "hono";
import type { ApiEnv } from "../access/authenticate.ts";
import { answerProblem } from "./problem.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Answers requests without a route: 405 with `Allow` if the path has other methods, else 404. */
export function answerUnserved(app: Hono<ApiEnv>): NotFoundHandler<ApiEnv> {
  return (context) => {
    const { method, path } = context.req;
    const allowed = methodsOf(app, path);
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

/** Returns the methods of the path's own routes, or else of the routes whose parameters match it. */
function methodsOf(app: Hono<ApiEnv>, path: string): readonly string[] {
  const served = METHODS.map((method) => ({ method, paths: pathsOf(app, method, path) }));
  const own = served.filter(({ paths }) => paths.includes(path));
  const chosen = own.length > 0 ? own : served.filter(({ paths }) => paths.length > 0);
  return chosen.map(({ method }) => method);
}

/** Middleware is registered for all methods, routes for one. */
function pathsOf(app: Hono<ApiEnv>, method: string, path: string): readonly string[] {
  const matches = app.router.match(method, path)[0].map(([[, route]]) => route);
  return matches.filter((route) => route.method === method).map((route) => route.path);
}
