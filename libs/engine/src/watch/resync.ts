import { ensureError, sleepMs, type Trigger } from "@konverge/core";
import type { Controller } from "../define/define-controller.ts";
import type { ObjectStore } from "../access/object-cache.ts";
import type { RequestSource } from "./request-source.ts";

export interface ResyncOptions {
  readonly controller: Controller;
  readonly store: ObjectStore;
  readonly source: RequestSource;
  /** How far this process's watches of owned and watched kinds have come by now. */
  readonly seen: () => NonNullable<Trigger["seen"]>;
  /** Changes when Redis may have lost requests. */
  readonly incarnation: () => Promise<string>;
  readonly signal: AbortSignal;
  /** Told of each request that Redis did not take. */
  readonly onError: (error: Error) => void;
  /** Told when Redis may have lost requests, before they are made again. */
  readonly onLost: () => void;
  /** Resolves with a reason when everything is to be requested once more. */
  readonly again: (signal: AbortSignal) => Promise<string>;
  /** Wait after such a request. */
  readonly retryMs?: number;
  /** How often a loss is looked for, in ms. Default 5 s: so much later the work goes on that only Redis knew of. */
  readonly checkMs?: number;
}

const LOST = "redis may have lost requests";

/**
 * Requests every object at once when leadership begins, when Redis may have lost what was requested, and when `again` says so;
 * then once per resync interval, spread over it.
 */
export async function runResync(options: ResyncOptions): Promise<void> {
  const { store, incarnation, signal, onError, onLost, retryMs = 1_000 } = options;
  await store.synced;
  for (let reason = "leadership acquired"; ;) {
    // Before the first request, so that a loss during the first round is noticed as well.
    const known = await insist(incarnation, { signal, onError, retryMs });
    const over = new AbortController();
    const round = AbortSignal.any([signal, over.signal]);
    const next = Promise.race([
      untilChanged(known, options, round).then(() => LOST),
      options.again(round),
    ]);
    const noticed = next.finally(() => over.abort());
    try {
      await Promise.all([requestAll(options, reason, round), noticed]);
    } catch (error) {
      if (signal.aborted || !over.signal.aborted) throw error;
    } finally {
      over.abort();
    }
    reason = await next;
    if (reason === LOST) onLost();
  }
}

/** A request that fails is repeated: to skip it would lose the work that the change before it announced. */
async function requestAll(
  { controller, store, source, seen, onError, retryMs = 1_000 }: ResyncOptions,
  firstReason: string,
  signal: AbortSignal,
): Promise<void> {
  let reason = firstReason;
  let pauseMs = 0;
  for (;;) {
    const objects = [...store.list()];
    for (const object of objects) {
      signal.throwIfAborted();
      if (pauseMs > 0) await sleepMs(pauseMs, signal);
      await insist(() => source.resync(object, { reason, seen: seen() }), {
        signal,
        onError,
        retryMs,
      });
    }
    reason = "resync interval";
    // setTimeout holds at most 2^31 - 1 ms.
    pauseMs = Math.min(controller.resyncMs / Math.max(1, store.list().length), 2 ** 31 - 1);
    if (store.list().length === 0) await sleepMs(Math.min(controller.resyncMs, 60_000), signal);
  }
}

async function untilChanged(
  known: string,
  { incarnation, checkMs = 5_000 }: ResyncOptions,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleepMs(checkMs, signal);
    // What a Redis has lost that is away now is seen when it is back.
    if ((await incarnation().catch(() => known)) !== known) return;
  }
}

async function insist<T>(
  call: () => Promise<T>,
  { signal, onError, retryMs }: Pick<ResyncOptions, "signal" | "onError"> & { retryMs: number },
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      onError(ensureError(error));
      await sleepMs(retryMs, signal);
    }
  }
}
