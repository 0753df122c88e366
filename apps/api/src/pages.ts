import type { GuardControl } from "@konverge/guard";
import { Hono } from "hono";
import { html } from "hono/html";
import type { ApiEnv } from "./authenticate.ts";
import { listGuards } from "./guard-routes.ts";
import { readObject } from "./object-routes.ts";
import { renderObjectPage } from "./object-page.ts";
import { renderOverview } from "./overview-page.ts";
import { PAGE_POLICY } from "./page-layout.ts";
import type { QueueAccess } from "./queue-access.ts";

/** What the API shows to people. */
export function pages(options: {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly cluster: string;
}): Hono<ApiEnv> {
  const { access, guards, cluster } = options;
  const app = new Hono<ApiEnv>();
  app.get("/o/:cluster/:controller/:namespace/:name", async (context) => {
    const { history, contention } = await readObject(
      access,
      context.get("caller"),
      context.req.param(),
    );
    context.header("content-security-policy", PAGE_POLICY);
    return context.html(html`<!doctype html>${renderObjectPage(history, contention)}`);
  });
  app.get("/", async (context) => {
    const [controllers, workers, views] = await Promise.all([
      access.controllers(cluster),
      access.workers(cluster),
      listGuards({ guards, clusters: () => access.clusters() }),
    ]);
    const counted = await Promise.all(
      controllers.map(async (controller) => {
        const { queue } = await access.find(cluster, controller.name);
        return { ...controller, ...(await queue.counts()) };
      }),
    );
    context.header("content-security-policy", PAGE_POLICY);
    return context.html(
      html`<!doctype html>${renderOverview({ controllers: counted, workers, guards: views })}`,
    );
  });
  return app;
}
