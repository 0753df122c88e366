import {
  guardListSchema,
  guardActionSchema,
  guardRateSchema,
  guardViewSchema,
  type GuardView,
} from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import { demand, demandSome, touches } from "../access/caller.ts";
import { route, type Route } from "../http/route.ts";

export interface GuardRoutesOptions {
  readonly guards: GuardControl;
  /** Every cluster that has controllers. */
  readonly clusters: () => Promise<readonly string[]>;
}

/** The guards and the orders of people; an order is answered with how the guard stands then. */
export function guardRoutes(options: GuardRoutesOptions): Route[] {
  const { guards } = options;
  const read = async (cluster: string): Promise<GuardView> => {
    const view = await guards.read(cluster);
    if (view !== undefined) return view;
    throw new KonvergeError("not_found", `no worker has guarded a cluster "${cluster}" yet`);
  };
  const actions = (["isolate", "reset"] as const).map((kind) =>
    route({
      id: `${kind}Guard`,
      method: "post",
      path: `/v1/guards/{cluster}/${kind}`,
      summary:
        kind === "isolate"
          ? "Send nothing to an API server any more, until a reset"
          : "Close the breaker of an API server, as after an outage",
      role: "operator",
      isOperatorAction: true,
      body: guardActionSchema,
      answer: guardViewSchema,
      problems: ["not_found"],
      async handle({ params: { cluster }, body, caller, audit }) {
        demand(caller, { cluster });
        await guards[kind](cluster, body);
        audit({ action: `guard.${kind}`, cluster, reason: body.reason }, body.by);
        return await read(cluster);
      },
    }),
  );
  return [
    route({
      id: "listGuards",
      method: "get",
      path: "/v1/guards",
      summary: "The guards of all clusters",
      role: "viewer",
      answer: guardListSchema,
      async handle({ caller }) {
        const views = await listGuards(options);
        return { items: views.filter(({ cluster }) => touches(caller.scope, { cluster })) };
      },
    }),
    route({
      id: "getGuard",
      method: "get",
      path: "/v1/guards/{cluster}",
      summary: "How an API server is protected, with the last transitions and what caused them",
      role: "viewer",
      answer: guardViewSchema,
      problems: ["not_found"],
      async handle({ params: { cluster }, caller }) {
        demandSome(caller, { cluster });
        return await read(cluster);
      },
    }),
    ...actions,
    route({
      id: "setGuardRate",
      method: "put",
      path: "/v1/guards/{cluster}/rate",
      summary: "Set the rate of the whole fleet, or go back to the configured one",
      role: "operator",
      isOperatorAction: true,
      body: guardRateSchema,
      answer: guardViewSchema,
      problems: ["not_found"],
      async handle({ params: { cluster }, body, caller, audit }) {
        demand(caller, { cluster });
        const { ratePerSecond, ...action } = body;
        await guards.setRate(cluster, ratePerSecond ?? undefined, action);
        const filter = ratePerSecond === null ? "configured" : `${ratePerSecond}/s`;
        audit({ action: "guard.rate", cluster, filter, reason: action.reason }, action.by);
        return await read(cluster);
      },
    }),
  ];
}

/** The guards of all clusters that have one. */
async function listGuards({ guards, clusters }: GuardRoutesOptions): Promise<GuardView[]> {
  const views = await Promise.all((await clusters()).map((cluster) => guards.read(cluster)));
  return views.filter((view) => view !== undefined);
}
