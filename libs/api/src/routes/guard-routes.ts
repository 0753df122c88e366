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
  /** All clusters with controllers. */
  readonly clusters: () => Promise<readonly string[]>;
}

/** Guards and the actions on them. An action returns the new state of the guard. */
export function guardRoutes(options: GuardRoutesOptions): Route[] {
  const { guards } = options;
  const read = async (cluster: string): Promise<GuardView> => {
    const view = await guards.read(cluster);
    if (view !== undefined) return view;
    throw new KonvergeError(
      "not_found",
      `no guard found for cluster "${cluster}"; no worker has connected to it`,
    );
  };
  const actions = (["isolate", "reset"] as const).map((kind) =>
    route({
      id: `${kind}Guard`,
      method: "post",
      path: `/v1/guards/{cluster}/${kind}`,
      summary:
        kind === "isolate"
          ? "Stop all calls to an API server until a reset"
          : "Close the breaker of an API server and ramp up the rate",
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
      summary: "List the guards of all clusters",
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
      summary: "Get a guard with its last transitions and their causes",
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
      summary: "Override the rate limit of all workers, or remove the override",
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

/** Reads the existing guards of all clusters. */
async function listGuards({ guards, clusters }: GuardRoutesOptions): Promise<GuardView[]> {
  const views = await Promise.all((await clusters()).map((cluster) => guards.read(cluster)));
  return views.filter((view) => view !== undefined);
}
