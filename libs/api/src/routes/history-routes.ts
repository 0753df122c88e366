import {
  activityQuerySchema,
  activitySchema,
  attemptPageSchema,
  attemptQuerySchema,
  contentionQuerySchema,
  contentionReportSchema,
  rollupsQuerySchema,
  rollupsSchema,
  type AttemptPage,
  type Rollups,
} from "@konverge/contracts";
import { defined } from "@konverge/core";
import { covers, demandSome } from "../access/caller.ts";
import { placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { priceOfPage } from "../queues/queue-view.ts";
import { readRoute, type Route } from "../http/route.ts";
import { readActivity } from "../views/read-activity.ts";
import { readContentionReport, resourceOf, rollupOf, summaryOf } from "../views/history-view.ts";

/** Minutes of counters that are as much work as a simple request. */
const MINUTES_PER_TOKEN = 10;
const MINUTES_PER_HOUR = 60;
/** The contention of the last hour, in simple requests. */
const PRICE_OF_CONTENTION = 5;

/** Attempts, contention and counts of a cluster. `home` is the default cluster. */
export function historyRoutes(access: QueueAccess, home: string): Route[] {
  return [
    readRoute({
      id: "listAttempts",
      path: "/v1/attempts",
      summary: "Search the attempts of a cluster, newest first",
      query: attemptQuerySchema,
      answer: attemptPageSchema,
      problems: ["not_found"],
      price: ({ query }) => priceOfPage(query.limit),
      async handle({ query, caller, scan }): Promise<AttemptPage> {
        const { cluster, kind, error, since, until, ...rest } = query;
        demandSome(caller, query);
        const history = await access.history(cluster);
        const resource = kind === undefined ? undefined : await resourceOf(access, cluster, kind);
        const range = { sinceMs: msOf(since), untilMs: msOf(until) };
        const page = await scan((options) =>
          history.search({ ...rest, ...range, errorCode: error, resource }, options),
        );
        const visible = page.items.filter(({ key }) => covers(caller.scope, placeOf(key)));
        return { items: visible.map(summaryOf), ...defined({ next: page.next }) };
      },
    }),
    readRoute({
      id: "getContentionReport",
      path: "/v1/contention",
      summary: "List contended objects, ownership flips and throttled keys",
      query: contentionQuerySchema,
      answer: contentionReportSchema,
      problems: ["not_found"],
      price: ({ query: { hours } }) => PRICE_OF_CONTENTION + hours,
      async handle({ query, caller }) {
        demandSome(caller, { cluster: query.cluster });
        return await readContentionReport(access, caller, query);
      },
    }),
    readRoute({
      id: "getActivity",
      path: "/v1/activity",
      summary: "Get the activity of a cluster or controller per minute",
      query: activityQuerySchema,
      answer: activitySchema,
      problems: ["not_found", "unknown_controller"],
      // All controllers together cost about as much as the overview.
      price: ({ query: { controller, minutes } }) =>
        (controller === undefined ? 10 : 2) * (1 + minutes / MINUTES_PER_TOKEN) +
        (controller === undefined ? 0 : PRICE_OF_CONTENTION + minutes / MINUTES_PER_HOUR),
      async handle({ query: { cluster = home, controller, minutes }, caller, scan }) {
        demandSome(caller, { cluster, ...defined({ controller }) });
        if (controller !== undefined) await access.find(cluster, controller);
        return await readActivity({ access, caller, cluster, controller, minutes, scan });
      },
    }),
    readRoute({
      id: "listRollups",
      path: "/v1/rollups",
      summary: "List the counts of a controller per minute",
      query: rollupsQuerySchema,
      answer: rollupsSchema,
      problems: ["unknown_controller"],
      price: ({ query: { minutes } }) => 1 + minutes / MINUTES_PER_TOKEN,
      async handle({ query: { cluster, controller, minutes }, caller }): Promise<Rollups> {
        demandSome(caller, { cluster, controller });
        // Rejects unknown controllers, which would otherwise look idle.
        await access.find(cluster, controller);
        const items = await (await access.history(cluster)).rollups(controller, minutes);
        return { items: items.map(rollupOf) };
      },
    }),
  ];
}

function msOf(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}
