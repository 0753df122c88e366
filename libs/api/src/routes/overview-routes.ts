import { overviewQuerySchema, overviewSchema } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import { demandSome } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readOverview } from "../views/read-overview.ts";
import { route, type Route } from "../http/route.ts";

export interface OverviewRoutesOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  /** The cluster that is shown when none is asked for. */
  readonly home: string;
}

/** Whether all is well, in one sentence, and what is not. */
export function overviewRoutes({ access, guards, home }: OverviewRoutesOptions): Route[] {
  return [
    route({
      id: "getOverview",
      method: "get",
      path: "/v1/overview",
      summary: "Whether all is well, in one sentence; what is not; a row per controller",
      role: "viewer",
      query: overviewQuerySchema,
      answer: overviewSchema,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        return await readOverview({ access, guards, cluster, caller });
      },
    }),
  ];
}
