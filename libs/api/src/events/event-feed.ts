import { sleepMs } from "@konverge/core";
import type { EventCursor } from "./event-cursor.ts";
import type { EventSource, PlacedEvent } from "./event-source.ts";

/** Workers store events once a second, so faster polling would not help. */
const POLL_MS = 250;
const RETRY_MS = 1_000;
/** Polls per read of the guard, whose state is large. */
const GUARD_EVERY = 4;

interface Subscription {
  /** The position before the first event that the listener receives. */
  readonly from: EventCursor;
  end(): void;
}

/** One reader of a cluster's events for any number of connections; it stops reading without listeners. */
export interface EventFeed {
  readonly source: EventSource;
  /** @throws KonvergeError `redis_unavailable` */
  subscribe(listener: (event: PlacedEvent) => void): Promise<Subscription>;
}

export function createEventFeed(source: EventSource, onError: (error: unknown) => void): EventFeed {
  const listeners = new Set<(event: PlacedEvent) => void>();
  /** Undefined without listeners. */
  let reading: Promise<{ cursor: EventCursor }> | undefined;

  const follow = async (state: { cursor: EventCursor }): Promise<void> => {
    for (let turn = 0; listeners.size > 0; turn++) {
      try {
        const withGuard = turn % GUARD_EVERY === 0;
        const { events, cursor, isFull } = await source.after(state.cursor, { withGuard });
        // Synchronous, so a subscriber receives exactly the events after its cursor.
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
