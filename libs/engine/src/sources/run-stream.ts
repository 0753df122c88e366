import { ensureError } from "@konverge/core";
import type { SourceClaim } from "@konverge/queue";
import type { StreamEvent, StreamSource } from "../define/event-source.ts";
import { checkCursor } from "./run-poll.ts";
import {
  accepted,
  namesOf,
  SourceFencedError,
  submit,
  type SourceContext,
} from "./source-context.ts";
import { within } from "./within.ts";

/** Events that are read before their requests are accepted. */
const MAX_UNACKNOWLEDGED = 1_000;

type Context = SourceContext<StreamSource>;

/**
 * Reads a stream from the acknowledged cursor to its end. The cursor advances over events whose requests, and those of all
 * earlier events, Redis has accepted.
 * @throws SourceFencedError; KonvergeError `redis_unavailable`; the error of the stream; Error if it ends without an event
 */
export async function runStream(context: Context, claim: SourceClaim): Promise<void> {
  const { source } = context;
  const over = new AbortController();
  const signal = AbortSignal.any([context.signal, over.signal]);
  const events = new AcknowledgedEvents({ ...context, signal }, claim, (error) =>
    over.abort(error),
  );
  const limit = { signal, timeoutMs: source.idleTimeoutMs };
  let iterator: AsyncIterator<StreamEvent> | undefined;
  try {
    const open = async () => await source.open(claim.cursor, signal);
    iterator = iteratorOf(await within(open(), { ...limit, what: "the opening of the stream" }));
    for (;;) {
      const next = await within(iterator.next(), { ...limit, what: "the wait for an event" });
      if (next.done === true) break;
      await events.add(next.value);
    }
    await events.settled();
    if (!events.isAny) throw new Error("the stream ended without an event");
  } finally {
    over.abort();
    const end = async () => await iterator?.return?.();
    // A generator that ignores its signal ends with its current wait; its events are read again.
    end().catch(() => undefined);
  }
}

/** @throws TypeError */
function iteratorOf(iterable: unknown): AsyncIterator<StreamEvent> {
  const given = (iterable ?? {}) as Partial<AsyncIterable<StreamEvent>>;
  const iterate = given[Symbol.asyncIterator];
  if (typeof iterate === "function") return iterate.call(given);
  throw new TypeError("the function of a stream must return an async iterable");
}

/** Requests the objects of events, and stores the cursor of the acknowledged ones. */
class AcknowledgedEvents {
  readonly #context: Context;
  readonly #claim: SourceClaim;
  readonly #onError: (error: Error) => void;
  #cursor: string | undefined;
  #stored: string | undefined;
  #received = 0;
  #acknowledged = 0;
  #running: Promise<void> | undefined;

  constructor(context: Context, claim: SourceClaim, onError: (error: Error) => void) {
    this.#context = context;
    this.#claim = claim;
    this.#onError = onError;
    this.#cursor = claim.cursor;
    this.#stored = claim.cursor;
  }

  get isAny(): boolean {
    return this.#received > 0;
  }

  /** Waits while too many events are not acknowledged. @throws TypeError for an invalid event */
  async add(event: unknown): Promise<void> {
    const context = this.#context;
    if (typeof event !== "object" || event === null || !("key" in event)) {
      throw new TypeError("an event must be { key, cursor }; its key is null for no object");
    }
    const { key, cursor } = event as StreamEvent;
    const names = namesOf(context.controller, key);
    if (cursor !== undefined) {
      checkCursor(cursor, "an event");
      this.#cursor = cursor;
    }
    for (const name of names) void submit(context, name);
    context.reporter.requested(names.length);
    this.#received += 1;
    if (this.#running === undefined) {
      context.reporter.behind(1, performance.now());
      this.#running = this.#acknowledge();
    }
    if (this.#received - this.#acknowledged >= MAX_UNACKNOWLEDGED) await this.settled();
  }

  /** Resolves when all events are acknowledged. @throws the error that ended it */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.#context.signal.throwIfAborted();
  }

  async #acknowledge(): Promise<void> {
    const { store, controller, source, reporter } = this.#context;
    const place = { controller: controller.name, source: source.name };
    try {
      while (this.#acknowledged < this.#received) {
        const startedAtMs = performance.now();
        const upTo = this.#received;
        const cursor = this.#cursor;
        await accepted(this.#context);
        if (cursor !== undefined && cursor !== this.#stored) {
          if (!(await store.advance(place, this.#claim, { cursor }))) {
            throw new SourceFencedError("fenced");
          }
          this.#stored = cursor;
        }
        // The times of events that arrived meanwhile are not kept.
        const waiting = this.#received - upTo;
        this.#acknowledged = upTo;
        reporter.succeeded();
        reporter.behind(waiting, waiting === 0 ? undefined : startedAtMs);
      }
    } catch (error) {
      this.#onError(ensureError(error));
    } finally {
      this.#running = undefined;
    }
  }
}
