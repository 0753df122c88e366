import {
  deadLetterQuerySchema,
  keyQuerySchema,
  ordersQuerySchema,
  pauseOrderSchema,
  releaseOrderSchema,
} from "@konverge/contracts";
import { Hono } from "hono";
import { limitBody } from "./limit-body.ts";
import type { QueueDesk } from "./queue-desk.ts";
import { readJson, readQuery } from "./read-json.ts";

const MAX_BODY_KIB = 4;

/** Keys, pauses, dead letters and orders, below `/v1`. */
export function queueRoutes(desk: QueueDesk): Hono {
  const routes = new Hono();
  routes.get("/keys", async ({ req, json }) =>
    json(await desk.listKeys(readQuery(req, keyQuerySchema))),
  );
  routes.get("/pauses", async ({ req, json }) =>
    json(await desk.listPauses(readQuery(req, clusterQuerySchema).cluster)),
  );
  routes.post("/pauses", limitBody(MAX_BODY_KIB), async ({ req, json }) =>
    json(await desk.pause(await readJson(req, pauseOrderSchema))),
  );
  routes.post("/pauses/resume", limitBody(MAX_BODY_KIB), async ({ req, json }) =>
    json(await desk.resume(await readJson(req, pauseOrderSchema))),
  );
  routes.get("/dead-letters", async ({ req, json }) =>
    json(await desk.listKeys({ ...readQuery(req, deadLetterQuerySchema), phase: "dead" })),
  );
  routes.post("/dead-letters/release", limitBody(MAX_BODY_KIB), async ({ req, json }) =>
    json(await desk.release(await readJson(req, releaseOrderSchema), "http")),
  );
  routes.get("/orders", async ({ req, json }) => {
    const { cluster, controller } = readQuery(req, ordersQuerySchema);
    return json(await desk.listOrders(cluster, controller));
  });
  return routes;
}

const clusterQuerySchema = ordersQuerySchema.pick({ cluster: true });
