import {
  guardListQuerySchema,
  guardListSchema,
  guardActionSchema,
  guardRateSchema,
  guardViewSchema,
  type GuardList,
  type GuardView,
} from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import type { AnnouncedWorker } from "@konverge/queue";
import { demand, demandSome, touches, type Caller } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { callMinutes } from "../views/read-activity.ts";
import { actionRoute, readRoute, route, type Route } from "../http/route.ts";

export interface GuardRoutesOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
}

/** Minutes that are as much work as a simple request. */
const MINUTES_PER_TOKEN = 10;

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
    actionRoute({
      id: `${kind}Guard`,
      path: `/v1/guards/{cluster}/${kind}`,
      summary:
        kind === "isolate"
          ? "Stop all calls to an API server until a reset"
          : "Close the breaker of an API server and ramp up the rate",
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
    readRoute({
      id: "listGuards",
      path: "/v1/guards",
      summary: "List the guards of all clusters",
      query: guardListQuerySchema,
      answer: guardListSchema,
      price: ({ query: { minutes = 0 } }) => 1 + minutes / MINUTES_PER_TOKEN,
      async handle({ query: { minutes = 0 }, caller }) {
        return { items: await listGuards(options, caller, minutes) };
      },
    }),
    readRoute({
      id: "getGuard",
      path: "/v1/guards/{cluster}",
      summary: "Get a guard with its last transitions and their causes",
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

/** Reads the existing guards in the scope of the caller. */
async function listGuards(
  { guards, access }: GuardRoutesOptions,
  caller: Caller,
  minutes: number,
): Promise<GuardList["items"]> {
  const clusters = await access.clusters();
  const items = await Promise.all(
    clusters
      .filter((cluster) => touches(caller.scope, { cluster }))
      .map(async (cluster) => {
        const [view, workers, gauges] = await Promise.all([
          guards.read(cluster),
          access.workers(cluster),
          minutes === 0 ? [] : access.gauges(cluster).read(minutes),
        ]);
        if (view === undefined) return [];
        return { ...view, ...loadOf(workers), activity: callMinutes(gauges, minutes) };
      }),
  );
  return items.flat();
}

/** Adds up the calls of all workers. */
function loadOf(
  workers: readonly AnnouncedWorker[],
): Pick<GuardList["items"][number], "waitingCalls" | "inFlight"> {
  const waitingCalls: Record<string, number> = {};
  let inFlight = 0;
  for (const { load } of workers) {
    inFlight += load?.calls.inFlight ?? 0;
    for (const [name, count] of Object.entries(load?.calls.waiting ?? {})) {
      waitingCalls[name] = (waitingCalls[name] ?? 0) + count;
    }
  }
  return { waitingCalls, inFlight };
}
