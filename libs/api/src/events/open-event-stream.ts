import { isKonvergeError } from "@konverge/core";
import { formatCursor, type EventCursor } from "./event-cursor.ts";
import type { EventFeed } from "./event-feed.ts";
import { isNewTo, type PlacedEvent } from "./event-source.ts";

/** Buffered events for a slow reader. Beyond this, it is disconnected and can resume after its last event. */
const MOST_BUFFERED = 5_000;
/** Heartbeats keep proxies from closing an idle connection and detect lost readers. */
const HEARTBEAT_MS = 15_000;
const RETRY_MS = 2_000;
/** Interval between checks of the caller's token. */
const CHECK_MS = 500;

export interface EventStreamOptions {
  readonly feed: EventFeed;
  /** `Last-Event-ID`. Default: now. */
  readonly from: EventCursor | undefined;
  readonly isWanted: (event: PlacedEvent) => boolean;
  /** Checked twice a second, however much the reader reads. A caller whose token has ended is disconnected. */
  readonly isAllowed: () => Promise<boolean>;
  /** Disconnects a reader that does not read. */
  readonly hangUp: () => void;
  readonly onEnd: () => void;
  /** Ends the stream when the API stops. */
  readonly signal: AbortSignal;
  readonly heartbeatMs?: number;
}

/** Opens server-sent events as a body, read on demand. @throws KonvergeError `redis_unavailable` */
export async function openEventStream(
  options: EventStreamOptions,
): Promise<ReadableStream<Uint8Array>> {
  const { feed, from, isWanted, isAllowed, hangUp, onEnd, signal } = options;
  const heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
  const buffer: PlacedEvent[] = [];
  const encoder = new TextEncoder();
  let wake: () => void = () => undefined;
  let isOpen = true;
  let unread = 0;

  const subscription = await feed.subscribe((event) => {
    if (!isOpen || !isWanted(event)) return;
    buffer.push(event);
    if (buffer.length > MOST_BUFFERED) cut();
    wake();
  });
  const end = () => {
    if (!isOpen) return;
    isOpen = false;
    subscription.end();
    clearInterval(heart);
    clearInterval(check);
    signal.removeEventListener("abort", end);
    buffer.length = 0;
    onEnd();
    wake();
  };
  const cut = () => {
    end();
    hangUp();
  };
  const heart = setInterval(() => {
    // A reader that misses four heartbeats is considered lost.
    if (++unread > 4) cut();
    wake();
  }, heartbeatMs);
  heart.unref();
  const check = setInterval(() => {
    // While Redis is unavailable, no events arrive either. Any other failure leaves the right of the caller unknown.
    const isAllowedNow = isAllowed().catch(
      (error: unknown) => isKonvergeError(error) && error.code === "redis_unavailable",
    );
    void isAllowedNow.then((isValid) => (isValid ? undefined : cut()));
  }, CHECK_MS);
  check.unref();
  signal.addEventListener("abort", end, { once: true });
  // Aborted while it subscribed.
  if (signal.aborted) end();

  /** Reads the missed events up to the first live one. */
  async function* missed(): AsyncGenerator<PlacedEvent[]> {
    let cursor = from ?? subscription.from;
    for (let isFull = from !== undefined; isFull && isOpen;) {
      const batch = await feed.source.after(cursor, { withGuard: true });
      ({ cursor, isFull } = batch);
      // Newer events are in the buffer.
      const old = batch.events.filter((event) => !isNewTo(subscription.from, event));
      yield old.filter(isWanted);
      isFull &&= old.length > 0;
    }
  }
  async function* chunks(): AsyncGenerator<string> {
    // The first ID lets a reader resume that is disconnected before its first event.
    const first = `id: ${formatCursor(from ?? subscription.from)}\n\n`;
    yield `retry: ${RETRY_MS}\n${first}`;
    for await (const events of missed()) {
      if (events.length > 0) yield events.map(textOf).join("");
    }
    while (isOpen) {
      if (buffer.length > 0) {
        yield buffer.splice(0).map(textOf).join("");
        continue;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await promise;
      if (!isOpen || buffer.length > 0) continue;
      yield ": heartbeat\n\n";
    }
  }
  const source = chunks();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await source.next();
          unread = 0;
          if (done !== true) {
            controller.enqueue(encoder.encode(value));
            return;
          }
          end();
          controller.close();
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
}

/** JSON has no line breaks, so names and reasons cannot break the framing. */
function textOf({ id, event }: PlacedEvent): string {
  return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
