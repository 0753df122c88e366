import { sleepMs } from "@konverge/core";
import type { EventCursor } from "./event-cursor.ts";
import type { EventSource, PlacedEvent } from "./event-source.ts";

/** What workers gather is stored once a second, so looking more often shows nothing sooner. */
const POLL_MS = 250;
const RETRY_MS = 1_000;
/** Polls per look at the guard, whose state is larger than its news. */
const GUARD_EVERY = 4;

interface Subscription {
  /** The first event to come lies behind this. */
  readonly from: EventCursor;
  end(): void;
}

/** One reader of a cluster's events, however many connections follow it; it reads nothing while nobody does. */
export interface EventFeed {
  readonly source: EventSource;
  /** @throws KonvergeError `redis_unavailable` */
  subscribe(listener: (event: PlacedEvent) => void): Promise<Subscription>;
}

export function createEventFeed(source: EventSource, onError: (error: unknown) => void): EventFeed {
  const listeners = new Set<(event: PlacedEvent) => void>();
  /** Undefined while nobody listens. */
  let reading: Promise<{ cursor: EventCursor }> | undefined;

  const follow = async (state: { cursor: EventCursor }): Promise<void> => {
    for (let turn = 0; listeners.size > 0; turn++) {
      try {
        const withGuard = turn % GUARD_EVERY === 0;
        const { events, cursor, isFull } = await source.after(state.cursor, { withGuard });
        // In one turn of the event loop: whoever subscribes gets the events behind the cursor that it was given.
        state.cursor = cursor;
        for (const event of events) {
          for (const listener of listeners) listener(event);
        }
        await sleepMs(isFull ? 0 : POLL_MS);
      } catch (error) {
        onError(error);
        await sleepMs(RETRY_MS);
      }
    }
    reading = undefined;
  };
  const start = async () => {
    const state = { cursor: await source.now() };
    void follow(state);
    return state;
  };
  return {
    source,
    async subscribe(listener) {
      let isLive = false;
      const follower = (event: PlacedEvent) => {
        if (isLive) listener(event);
      };
      listeners.add(follower);
      const end = () => void listeners.delete(follower);
      try {
        reading ??= start();
        const { cursor } = await reading;
        isLive = true;
        return { from: cursor, end };
      } catch (error) {
        reading = undefined;
        end();
        throw error;
      }
    },
  };
}
