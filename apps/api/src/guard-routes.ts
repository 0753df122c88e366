import {
  guardOrderSchema,
  guardRateSchema,
  type GuardList,
  type GuardView,
} from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import { Hono } from "hono";
import { limitBody } from "./limit-body.ts";
import { readJson } from "./read-json.ts";

const MAX_BODY_KIB = 4;

export interface GuardRoutesOptions {
  readonly guards: GuardControl;
  /** Every cluster that has controllers. */
  readonly clusters: () => Promise<readonly string[]>;
}

/** `GET /v1/guards`, `GET /v1/guards/{cluster}` and the orders of people; an order is answered with how the guard stands then. */
export function guardRoutes(options: GuardRoutesOptions): Hono {
  const { guards } = options;
  const read = async (cluster: string): Promise<GuardView> => {
    const view = await guards.read(cluster);
    if (view !== undefined) return view;
    throw new KonvergeError("not_found", `no worker has guarded a cluster "${cluster}" yet`);
  };
  const routes = new Hono();
  routes.get("/", async (context) => {
    const answer: GuardList = { items: await listGuards(options) };
    return context.json(answer);
  });
  routes.get("/:cluster", async ({ req, json }) => json(await read(req.param("cluster"))));
  for (const kind of ["isolate", "reset"] as const) {
    routes.post(`/:cluster/${kind}`, limitBody(MAX_BODY_KIB), async ({ req, json }) => {
      const cluster = req.param("cluster");
      await guards[kind](cluster, await readJson(req, guardOrderSchema));
      return json(await read(cluster));
    });
  }
  routes.put("/:cluster/rate", limitBody(MAX_BODY_KIB), async ({ req, json }) => {
    const cluster = req.param("cluster");
    const { ratePerSecond, ...order } = await readJson(req, guardRateSchema);
    await guards.setRate(cluster, ratePerSecond ?? undefined, order);
    return json(await read(cluster));
  });
  return routes;
}

/** The guards of all clusters that have one. */
export async function listGuards({ guards, clusters }: GuardRoutesOptions): Promise<GuardView[]> {
  const views = await Promise.all((await clusters()).map((cluster) => guards.read(cluster)));
  return views.filter((view) => view !== undefined);
}
