import {
  clusterQuerySchema,
  inboundQuerySchema,
  inboundResultSchema,
  sourceListSchema,
} from "@konverge/contracts";
import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { Metrics, ReceivedDelivery } from "@konverge/telemetry";
import { covers, demandSome } from "../access/caller.ts";
import { readRoute, route, type Route } from "../http/route.ts";
import { acceptDelivery } from "../inbound/accept-delivery.ts";
import type { InboundSecrets } from "../inbound/inbound-secrets.ts";
import { sourceViews } from "../inbound/source-list.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Deliveries to the inbound sources of controllers, and the state of all sources. */
export function sourceRoutes({
  access,
  secrets,
  metrics,
  home,
}: {
  readonly access: QueueAccess;
  readonly secrets: InboundSecrets;
  readonly metrics: Pick<Metrics, "receivedDelivery">;
  /** The default cluster. */
  readonly home: string;
}): Route[] {
  return [
    route({
      id: "deliver",
      method: "post",
      path: "/v1/inbound/{name}",
      summary: "Deliver an event to an inbound source of a controller",
      role: "none",
      query: inboundQuerySchema,
      takesBytes: true,
      answer: inboundResultSchema,
      status: 202,
      problems: [
        "unauthorized",
        "rate_limited",
        "not_found",
        "inbound_closed",
        "queue_full",
        "invalid_body",
        "body_too_large",
        "unsupported_media_type",
      ],
      async handle({ params: { name }, query: { cluster = home }, context, admit }) {
        const found = await access.sources(cluster);
        const inbound = NAME.test(name) ? found.find(name) : undefined;
        if (inbound === undefined) {
          const detail = `no controller of cluster "${cluster}" has an inbound source of this name`;
          throw new KonvergeError("not_found", `${detail}; start a worker with the controller`);
        }
        const count = (result: ReceivedDelivery["result"]) =>
          metrics.receivedDelivery({ cluster, source: name, result });
        const id = `inbound ${cluster}/${name}`;
        try {
          const result = await acceptDelivery(
            { name, inbound, store: found.store, secrets, admit: () => admit(id) },
            context,
          );
          count(result.status);
          return result;
        } catch (error) {
          count(isKonvergeError(error) ? error.code : "internal");
          throw error;
        }
      },
    }),
    readRoute({
      id: "listSources",
      path: "/v1/sources",
      summary: "List the polls, streams and inbound sources of controllers with their state",
      query: clusterQuerySchema,
      answer: sourceListSchema,
      problems: ["not_found"],
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        const found = await access.sources(cluster);
        const seen = found.controllers.filter(({ name: controller }) =>
          covers(caller.scope, { cluster, controller }),
        );
        const reports = seen.length === 0 ? [] : await found.store.reports();
        return { items: sourceViews(seen, reports) };
      },
    }),
  ];
}
