import { eventQuerySchema, streamEventSchema, type EventQuery } from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import type { Context } from "hono";
import { demandSome, touches, type Caller } from "../access/caller.ts";
import { parseCursor } from "../events/event-cursor.ts";
import { createEventFeed, type EventFeed } from "../events/event-feed.ts";
import { createEventSource, type PlacedEvent } from "../events/event-source.ts";
import { openEventStream } from "../events/open-event-stream.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { route, type Route } from "../http/route.ts";

const MOST_CONNECTIONS = 200;
const COME_AGAIN_MS = 10_000;

export interface EventRoutesOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly isStillValid: (caller: Caller) => Promise<boolean>;
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
  readonly heartbeatMs: number | undefined;
}

/** `GET /v1/events`. */
export function eventRoutes(options: EventRoutesOptions): Route[] {
  const { access, guards, isStillValid, onError, signal, heartbeatMs } = options;
  const feeds = new Map<string, EventFeed>();
  let connections = 0;

  const feedOf = async (cluster: string): Promise<EventFeed> => {
    const known = feeds.get(cluster);
    if (known !== undefined) return known;
    const history = await access.history(cluster);
    const source = createEventSource({ cluster, history, audit: access.audit, guards });
    const feed = feeds.get(cluster) ?? createEventFeed(source, onError);
    feeds.set(cluster, feed);
    return feed;
  };
  const open = async (context: Context, caller: Caller, query: EventQuery) => {
    const last = context.req.header("last-event-id");
    const from = last === undefined ? undefined : parseCursor(last);
    const feed = await feedOf(query.cluster);
    const { outgoing } = (context.env ?? {}) as { outgoing?: { destroy(): void } };
    return await openEventStream({
      feed,
      from,
      // An action on more than the scope affects the scope as well.
      isWanted: (event) => touches(caller.scope, event.place) && isAskedFor(query, event),
      isAllowed: () => isStillValid(caller),
      hangUp: () => outgoing?.destroy(),
      onEnd: () => connections--,
      signal,
      ...defined({ heartbeatMs }),
    });
  };
  return [
    route({
      id: "followEvents",
      method: "get",
      path: "/v1/events",
      summary:
        "Follow attempts, operator actions and breakers as server-sent events; resumes after `Last-Event-ID`",
      role: "viewer",
      query: eventQuerySchema,
      answer: streamEventSchema,
      headers: { "last-event-id": "Event ID to continue after" },
      produces: "text/event-stream",
      problems: ["not_found"],
      async handle({ query, caller, context }) {
        demandSome(caller, query);
        if (connections >= MOST_CONNECTIONS) {
          const detail = `limit of ${MOST_CONNECTIONS} event streams per process reached`;
          throw new KonvergeError("rate_limited", detail, { retryAfterMs: COME_AGAIN_MS });
        }
        connections++;
        const body = await open(context, caller, query).catch((error: unknown) => {
          connections--;
          throw error;
        });
        return new Response(body, {
          headers: {
            "content-type": "text/event-stream",
            "cache-control": "no-store",
            // Disables the response buffering of proxies.
            "x-accel-buffering": "no",
          },
        });
      },
    }),
  ];
}

function isAskedFor(query: EventQuery, { event, place, name }: PlacedEvent): boolean {
  const { controller, namespace, outcome } = query;
  if (controller !== undefined && place.controller !== controller) return false;
  if (namespace !== undefined && place.namespace !== namespace) return false;
  if (query.name !== undefined && name?.includes(query.name) !== true) return false;
  return outcome === undefined || (event.type === "attempt" && event.data.outcome === outcome);
}
