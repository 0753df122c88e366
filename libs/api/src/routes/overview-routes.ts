import { overviewQuerySchema, overviewSchema } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import { demandSome } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readOverview } from "../views/read-overview.ts";
import { readRoute, type Route } from "../http/route.ts";

/** An hour of counters and the queue of each controller, in simple requests. */
const PRICE = 20;

export interface OverviewRoutesOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  /** The default cluster. */
  readonly home: string;
}

/** The overview of a cluster. */
export function overviewRoutes({ access, guards, home }: OverviewRoutesOptions): Route[] {
  return [
    readRoute({
      id: "getOverview",
      path: "/v1/overview",
      summary: "Get a summary of a cluster with its problems, controllers and workflows",
      query: overviewQuerySchema,
      answer: overviewSchema,
      price: () => PRICE,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        return await readOverview({ access, guards, cluster, caller });
      },
    }),
  ];
}
