import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import { KonvergeError } from "@konverge/core";
import { Hono } from "hono";
import { answerMethod } from "./answer-unserved.ts";
import { answerProblem, PROBLEM } from "./problem.ts";
import type { QueueAccess } from "./queue-access.ts";

const PATH = "/queues";
const LOOKING: readonly string[] = ["GET", "HEAD"];

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
      const queues = await access.rawQueues(controller);
      for (const [shard, { queue }] of queues.entries()) {
        // The board tells queues apart by their names, which the shards of one share.
        const prefix = queues.length === 1 ? "" : `shard ${shard}: `;
        board.addQueue(new BullMQAdapter(queue, { readOnlyMode: true, prefix }));
      }
    }
  };
  const app = new Hono();
  app.use(`${PATH}/*`, async (context, next) => {
    const { method, path } = context.req;
    if (!LOOKING.includes(method)) return answerMethod(context, LOOKING);
    await refresh();
    await next();
    const { status, headers } = context.res;
    if (status < 400 || headers.get("content-type") === PROBLEM) return;
    // The board has errors of a form of its own.
    const code = status < 500 ? "not_found" : "internal";
    context.res = answerProblem(
      context,
      new KonvergeError(code, `${path}: ${status} by the board`),
    );
  });
  app.get(`${PATH}/`, (context) => context.redirect(PATH));
  app.route(PATH, adapter.registerPlugin());
  return app;
}
