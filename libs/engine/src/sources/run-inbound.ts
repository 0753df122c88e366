import { nextDelay, sleepMs, type BackoffPolicy } from "@konverge/core";
import type { StoredDelivery, TakenDeliveries } from "@konverge/queue";
import type { Delivery, InboundSource } from "../define/event-source.ts";
import { errorOfThrown } from "../define/thrown-error.ts";
import { accepted, namesOf, submit, type SourceContext } from "./source-context.ts";
import { within } from "./within.ts";

/** Concurrent calls of `map`. */
const AT_ONCE = 16;
/** Interval in which deliveries are read, in case a message was lost. */
const POLL_MS = 5_000;
const MAX_ERROR = 500;
const RETRY: BackoffPolicy = {
  baseMs: 1_000,
  factor: 2,
  capMs: 300_000,
  steps: Infinity,
  jitter: { kind: "equal" },
};

type Context = SourceContext<InboundSource>;

/** A delivery as the HTTP API stores it. */
interface Written extends Pick<Delivery, "event" | "headers"> {
  readonly form: "json" | "text" | "cloudevent";
  readonly body: string;
  /** Missing if the sender gave none. */
  readonly id?: string;
  readonly traceparent?: string;
}

/**
 * Maps the deliveries of an inbound source until the signal is aborted. A delivery is removed once its requests are accepted. One
 * that fails is tried again later and does not delay others. @throws KonvergeError `redis_unavailable`
 */
export async function runInbound(context: Context): Promise<void> {
  const { source, store, signal } = context;
  const running = new Map<string, Promise<void>>();
  const failed = new Map<string, number>();
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const wakes = new Wakes();
  const unlisten = store.onArrived(source.name, () => wakes.fire());
  try {
    for (;;) {
      // The race below can be won by a delivery that ended.
      signal.throwIfAborted();
      const woken = wakes.next();
      const taken = await store.take(source.name, 2 * AT_ONCE);
      report(context, taken, failed);
      for (const delivery of taken.deliveries) {
        if (running.size >= AT_ONCE) break;
        if (running.has(delivery.number)) continue;
        const work = handle(context, delivery, failed)
          .catch((error: unknown) => broken.reject(error))
          .finally(() => {
            running.delete(delivery.number);
            wakes.fire();
          });
        running.set(delivery.number, work);
      }
      const over = new AbortController();
      const timer = sleepMs(waitMs(taken, running), AbortSignal.any([signal, over.signal]));
      try {
        await Promise.race([broken.promise, woken, timer]);
      } finally {
        over.abort();
        timer.catch(() => undefined);
      }
    }
  } finally {
    unlisten();
    await Promise.allSettled(running.values());
  }
}

/** Fires for the waiters since the last time. */
class Wakes {
  #waiting = Promise.withResolvers<void>();

  next(): Promise<void> {
    return this.#waiting.promise;
  }

  fire(): void {
    this.#waiting.resolve();
    this.#waiting = Promise.withResolvers<void>();
  }
}

/** With all slots taken or all due ones running, the end of one wakes the loop. */
function waitMs(
  { nextMs = POLL_MS }: TakenDeliveries,
  running: ReadonlyMap<string, unknown>,
): number {
  const next = nextMs <= 0 && running.size > 0 ? POLL_MS : nextMs;
  return Math.min(POLL_MS, Math.max(next, 1));
}

function report(
  { reporter }: Context,
  { waiting, oldestMs }: TakenDeliveries,
  failed: ReadonlyMap<string, number>,
): void {
  reporter.behind(waiting, waiting === 0 ? undefined : performance.now() - oldestMs);
  if (waiting === 0 && failed.size === 0 && reporter.failures > 0) reporter.succeeded();
}

function readDelivery(
  { form, body, id, event, headers }: Written,
  { number, receivedAtMs }: StoredDelivery,
): Delivery {
  return {
    id: id ?? number,
    data: dataOf(form, body),
    event,
    headers,
    receivedAt: new Date(receivedAtMs),
  };
}

function dataOf(form: Written["form"], body: string): unknown {
  if (form === "text") return body;
  const parsed: unknown = JSON.parse(body);
  if (form === "json") return parsed;
  const { data, data_base64: base64 } = parsed as Record<string, unknown>;
  return data ?? base64;
}

async function handle(
  context: Context,
  delivery: StoredDelivery,
  failed: Map<string, number>,
): Promise<void> {
  const { source, store, reporter, signal } = context;
  const { number, tries } = delivery;
  let requested = 0;
  try {
    const written = JSON.parse(delivery.text) as Written;
    const call = async () => await source.map(readDelivery(written, delivery));
    const objects = await within(call(), { signal, timeoutMs: source.timeoutMs, what: "map" });
    const names = namesOf(context.controller, objects);
    const { traceparent } = written;
    const reason = written.event["type"];
    for (const name of names) {
      void submit(context, name, { traceparent, ...(reason === undefined ? {} : { reason }) });
    }
    requested = names.length;
  } catch (error) {
    signal.throwIfAborted();
    failed.set(number, tries + 1);
    reporter.failed(error, Math.max(...failed.values()));
    const step = nextDelay(RETRY, tries);
    const againMs = Math.ceil(step.kind === "wait" ? step.afterMs : RETRY.capMs);
    const { message } = errorOfThrown(error);
    await store.settle(source.name, number, { againMs, error: message.slice(0, MAX_ERROR) });
    return;
  }
  if (requested > 0) await accepted(context);
  await store.settle(source.name, number);
  failed.delete(number);
  reporter.requested(requested);
  if (failed.size === 0) reporter.succeeded();
}
