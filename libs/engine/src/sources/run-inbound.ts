import { defined, ensureError, linkAbort, nextDelay, type BackoffPolicy } from "@konverge/core";
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
  /** Unknown if a newer version has stored it. */
  readonly form: string;
  readonly body: string;
  /** Absent if the sender sent none. */
  readonly id?: string;
  readonly traceparent?: string;
}

/**
 * Maps the deliveries of an inbound source until the signal is aborted. A delivery is removed once its requests are accepted. A
 * failed delivery is tried again later and does not delay others. @throws KonvergeError `redis_unavailable`
 */
export async function runInbound(given: Context): Promise<void> {
  const { source, store } = given;
  const running = new Map<string, Promise<void>>();
  const failed = new Map<string, number>();
  const wakes = new Wakes();
  const over = new AbortController();
  const unlink = linkAbort(over, given.signal);
  const { signal } = over;
  signal.addEventListener("abort", () => wakes.fire());
  const unlisten = store.onArrived(source.name, () => wakes.fire());
  const context = { ...given, signal };
  try {
    for (;;) {
      // The error of a delivery that could not be settled, or the end of the leadership.
      signal.throwIfAborted();
      wakes.reset();
      const taken = await store.take(source.name, 2 * AT_ONCE);
      report(context, taken, failed);
      for (const number of taken.due) {
        if (running.size >= AT_ONCE) break;
        if (running.has(number)) continue;
        const work = handle(context, number, failed)
          .catch((error: unknown) => over.abort(ensureError(error)))
          .finally(() => {
            running.delete(number);
            wakes.fire();
          });
        running.set(number, work);
      }
      await wakes.wait(waitMs(taken, running));
    }
  } finally {
    unlink();
    unlisten();
    over.abort();
    await Promise.allSettled(running.values());
  }
}

/** Wakes one waiter. */
class Wakes {
  #isFired = false;
  #wake: (() => void) | undefined;

  /** What fires from now on ends the next wait. */
  reset(): void {
    this.#isFired = false;
  }

  fire(): void {
    this.#isFired = true;
    this.#wake?.();
  }

  /** Resolves when it has fired since the reset, or after `ms`. */
  async wait(ms: number): Promise<void> {
    if (this.#isFired) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

/** If all slots are taken or all due deliveries run, the end of a delivery wakes the loop. */
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

/** @throws TypeError for an unknown form */
function dataOf(form: string, body: string): unknown {
  switch (form) {
    case "text":
      return body;
    case "json":
      return JSON.parse(body);
    case "cloudevent": {
      const { data, data_base64: base64 } = JSON.parse(body) as Record<string, unknown>;
      return data ?? base64;
    }
    default:
      throw new TypeError(
        `the delivery has the unknown form "${form}"; update the workers to the version of the HTTP API`,
      );
  }
}

async function handle(
  context: Context,
  number: string,
  failed: Map<string, number>,
): Promise<void> {
  const { source, store, reporter, signal } = context;
  const delivery = await store.read(source.name, number);
  if (delivery === undefined) {
    await store.settle(source.name, number);
    return;
  }
  let requested = 0;
  try {
    const written = JSON.parse(delivery.text) as Written;
    const call = async () => await source.map(readDelivery(written, delivery));
    const objects = await within(call(), { signal, timeoutMs: source.timeoutMs, what: "map" });
    const names = namesOf(context.controller, objects);
    const { traceparent } = written;
    const reason = written.event["type"];
    for (const name of names) {
      void submit(context, name, { traceparent, ...defined({ reason }) });
    }
    requested = names.length;
  } catch (error) {
    signal.throwIfAborted();
    failed.set(number, delivery.tries + 1);
    reporter.failed(error, Math.max(...failed.values()));
    const step = nextDelay(RETRY, delivery.tries);
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
