import { eventQuerySchema, streamEventSchema, type EventQuery } from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import type { Context } from "hono";
import { demandSome, isUnrestricted, touches, type Caller } from "../access/caller.ts";
import { isBehind, parseCursor, type EventCursor } from "../events/event-cursor.ts";
import { createEventFeed, type EventFeed } from "../events/event-feed.ts";
import { createEventSource, type PlacedEvent } from "../events/event-source.ts";
import { openEventStream } from "../events/open-event-stream.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readRoute, type Route } from "../http/route.ts";

const MOST_CONNECTIONS = 200;
const MOST_OF_CALLER = 50;
/** Only admins read older changes, because these are entries of the audit log. */
const CHANGES_REPLAYED_MS = 10 * 60_000;
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
  const connections = new Connections();

  const feedOf = async (cluster: string): Promise<EventFeed> => {
    const known = feeds.get(cluster);
    if (known !== undefined) return known;
    const history = await access.history(cluster);
    const source = createEventSource({ cluster, history, audit: access.audit, guards });
    const feed = feeds.get(cluster) ?? createEventFeed(source, onError);
    feeds.set(cluster, feed);
    return feed;
  };
  const open = async (
    context: Context,
    { caller, query, onEnd }: { caller: Caller; query: EventQuery; onEnd: () => void },
  ) => {
    const last = context.req.header("last-event-id");
    const from = last === undefined ? undefined : startOf(parseCursor(last), caller);
    const feed = await feedOf(query.cluster);
    const { outgoing } = (context.env ?? {}) as { outgoing?: { destroy(): void } };
    return await openEventStream({
      feed,
      from,
      // An action on more than the scope affects the scope as well.
      isWanted: (event) => touches(caller.scope, event.place) && isAskedFor(query, event),
      isAllowed: () => isStillValid(caller),
      hangUp: () => outgoing?.destroy(),
      onEnd,
      signal,
      ...defined({ heartbeatMs }),
    });
  };
  return [
    readRoute({
      id: "followEvents",
      path: "/v1/events",
      summary:
        "Follow attempts, operator actions and breakers as server-sent events; resumes after `Last-Event-ID`",
      query: eventQuerySchema,
      answer: streamEventSchema,
      headers: { "last-event-id": "Event ID to continue after" },
      produces: "text/event-stream",
      problems: ["not_found"],
      async handle({ query, caller, context }) {
        demandSome(caller, query);
        const headers = {
          "content-type": "text/event-stream",
          "cache-control": "no-store",
          // Disables the response buffering of proxies.
          "x-accel-buffering": "no",
        };
        // A stream for HEAD would have no reader.
        if (context.req.method === "HEAD") return new Response(null, { headers });
        const onEnd = connections.add(caller);
        const body = await open(context, { caller, query, onEnd }).catch((error: unknown) => {
          onEnd();
          throw error;
        });
        return new Response(body, { headers });
      },
    }),
  ];
}

/** The open event streams of a process. */
class Connections {
  readonly #ofCaller = new Map<string, number>();
  #all = 0;

  /** Returns the function that ends the connection. @throws KonvergeError `rate_limited` */
  add({ id }: Caller): () => void {
    const own = this.#ofCaller.get(id) ?? 0;
    if (own >= MOST_OF_CALLER || this.#all >= MOST_CONNECTIONS) {
      const [most, per] =
        own >= MOST_OF_CALLER ? [MOST_OF_CALLER, "caller"] : [MOST_CONNECTIONS, "process"];
      const detail = `limit of ${most} event streams per ${per} reached`;
      throw new KonvergeError("rate_limited", detail, { retryAfterMs: COME_AGAIN_MS });
    }
    this.#all++;
    this.#ofCaller.set(id, own + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#all--;
      const left = (this.#ofCaller.get(id) ?? 1) - 1;
      if (left === 0) this.#ofCaller.delete(id);
      else this.#ofCaller.set(id, left);
    };
  }
}

/** Returns where a caller continues. A cursor is not secret, so a caller can make one for any time. */
function startOf(cursor: EventCursor, caller: Caller): EventCursor {
  if (caller.role === "admin" && isUnrestricted(caller)) return cursor;
  const oldest = `${Date.now() - CHANGES_REPLAYED_MS}-0`;
  return isBehind(oldest, cursor.change) ? { ...cursor, change: oldest } : cursor;
}

function isAskedFor(query: EventQuery, { event, place, name }: PlacedEvent): boolean {
  const { controller, namespace, outcome } = query;
  if (controller !== undefined && place.controller !== controller) return false;
  if (namespace !== undefined && place.namespace !== namespace) return false;
  if (query.name !== undefined && name?.includes(query.name) !== true) return false;
  return outcome === undefined || (event.type === "attempt" && event.data.outcome === outcome);
}
