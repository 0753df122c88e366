import { expect, test } from "vitest";
import type { EventFeed } from "./event-feed.ts";
import { openEventStream } from "./open-event-stream.ts";

test("ends a stream that opens while the process stops", async () => {
  const closing = new AbortController();
  const ends: string[] = [];
  const feed: Pick<EventFeed, "subscribe"> = {
    subscribe: async () => {
      closing.abort();
      return { from: { attempts: "0-0" }, end: () => ends.push("subscription") } as never;
    },
  };
  const body = await openEventStream({
    feed: feed as EventFeed,
    from: undefined,
    isWanted: () => true,
    isAllowed: async () => true,
    hangUp: () => undefined,
    onEnd: () => ends.push("stream"),
    signal: closing.signal,
  });
  // Without an end, the reader would wait for heartbeats.
  await new Response(body).text();
  expect(ends).toEqual(["subscription", "stream"]);
});
