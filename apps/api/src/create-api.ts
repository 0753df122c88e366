import type { GuardControl } from "@konverge/guard";
import type { Metrics } from "@konverge/telemetry";
import { Hono } from "hono";
import { html } from "hono/html";
import { secureHeaders } from "hono/secure-headers";
import { guardAccess } from "./access-guard.ts";
import { answerUnserved } from "./answer-unserved.ts";
import { guardRoutes, listGuards } from "./guard-routes.ts";
import { attemptRoutes, fightRoutes, rollupRoutes } from "./history-routes.ts";
import { jobBoard } from "./job-board.ts";
import { objectPages, objectRoutes } from "./object-routes.ts";
import { renderOverview } from "./overview-page.ts";
import { PAGE_POLICY } from "./page-layout.ts";
import { answerProblem } from "./problem.ts";
import type { QueueAccess } from "./queue-access.ts";
import { createQueueDesk } from "./queue-desk.ts";
import { queueRoutes } from "./queue-routes.ts";
import { reconcileRoutes } from "./reconcile-routes.ts";

export interface ApiOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly metrics: Metrics;
  readonly token: string | undefined;
  /** The cluster that the overview and the raw job view show. */
  readonly cluster: string;
  /** Told of errors whose text callers do not get. */
  readonly onError: (error: unknown) => void;
}

/** The API as one web-standard `fetch`, to be served or mounted in a server of your own. */
export function createApi(options: ApiOptions): {
  readonly fetch: (request: Request) => Response | Promise<Response>;
} {
  const { access, guards, metrics, token, cluster, onError } = options;
  const guarded = { guards, clusters: () => access.clusters() };
  const desk = createQueueDesk(access);
  const app = new Hono();
  app.onError((error, context) => {
    const response = answerProblem(context, error);
    if (response.status === 500) onError(error);
    return response;
  });
  app.notFound(answerUnserved(app));
  app.get("/livez", (context) => context.text("ok\n"));
  app.get("/readyz", async (context) => {
    await access.controllers(cluster);
    return context.text("ok\n");
  });
  app.use("*", guardAccess(token));
  app.use("*", secureHeaders());
  app.get("/metrics", async (context) =>
    context.body(await metrics.text(), 200, { "content-type": metrics.contentType }),
  );
  app.route("/v1/reconciles", reconcileRoutes(access, desk));
  app.route("/v1", queueRoutes(desk));
  app.route("/v1/objects", objectRoutes(access));
  app.route("/v1/attempts", attemptRoutes(access));
  app.route("/v1/fights", fightRoutes(access));
  app.route("/v1/rollups", rollupRoutes(access));
  app.route("/v1/guards", guardRoutes(guarded));
  app.get("/v1/controllers", async (context) =>
    context.json({ items: await access.controllers(cluster) }),
  );
  app.get("/v1/workers", async (context) => context.json({ items: await access.workers(cluster) }));
  app.use("/o/*", async (context, next) => {
    await next();
    context.header("content-security-policy", PAGE_POLICY);
  });
  app.route("/o", objectPages(access));
  app.get("/", async (context) => {
    const [controllers, workers, guardViews] = await Promise.all([
      access.controllers(cluster),
      access.workers(cluster),
      listGuards(guarded),
    ]);
    const counted = await Promise.all(
      controllers.map(async (controller) => {
        const { queue } = await access.find(cluster, controller.name);
        return { ...controller, ...(await queue.counts()) };
      }),
    );
    context.header("content-security-policy", PAGE_POLICY);
    return context.html(
      html`<!doctype html>${renderOverview({ controllers: counted, workers, guards: guardViews })}`,
    );
  });
  app.route("/", jobBoard(access, cluster));
  return { fetch: (request) => app.fetch(request) };
}
