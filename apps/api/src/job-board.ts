import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import type { QueueAccess } from "./queue-access.ts";

const PATH = "/queues";

/**
 * bull-board over the raw BullMQ jobs, to look at only: its buttons would drop follow-ups or run a key twice. Queues
 * appear when their controllers have been announced.
 */
export function jobBoard(access: QueueAccess, cluster: string): Hono {
  const adapter = new HonoAdapter(serveStatic);
  adapter.setBasePath(PATH);
  const board = createBullBoard({ queues: [], serverAdapter: adapter });
  const shown = new Set<string>();
  const refresh = async () => {
    for (const controller of await access.controllers(cluster)) {
      if (shown.has(controller.name)) continue;
      shown.add(controller.name);
      board.addQueue(new BullMQAdapter(access.rawQueue(controller).queue, { readOnlyMode: true }));
    }
  };
  const app = new Hono();
  app.use(`${PATH}/*`, async (_context, next) => {
    await refresh();
    await next();
  });
  app.get(`${PATH}/`, (context) => context.redirect(PATH));
  app.route(PATH, adapter.registerPlugin());
  return app;
}
