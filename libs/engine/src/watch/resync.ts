import { ensureError, sleepMs, type Trigger } from "@konverge/core";
import type { Controller } from "../define/define-controller.ts";
import type { ObjectStore } from "../access/object-cache.ts";
import type { RequestSource } from "./request-source.ts";

export interface ResyncOptions {
  readonly controller: Controller;
  readonly store: ObjectStore;
  readonly source: RequestSource;
  /** Versions that this process's watches of owned and watched kinds have reached. */
  readonly seen: () => NonNullable<Trigger["seen"]>;
  /** Differs after Redis may have lost requests. */
  readonly incarnation: () => Promise<string>;
  readonly signal: AbortSignal;
  /** Receives the error of each request that Redis did not accept. */
  readonly onError: (error: Error) => void;
  /** Called if Redis may have lost requests, before they are repeated. */
  readonly onLost: () => void;
  /** Resolves with a reason when all objects must be enqueued again. */
  readonly again: (signal: AbortSignal) => Promise<string>;
  /** Delay after such an error, in ms. */
  readonly retryMs?: number;
  /** Interval of the check for data loss, in ms. Default 5 s, which delays the recovery of lost work. */
  readonly checkMs?: number;
}

const LOST = "possible Redis data loss";

/**
 * Enqueues every object when leadership begins, when Redis may have lost requests, and when `again` resolves. Then repeats it
 * per resync interval, spread over the interval.
 */
export async function runResync(options: ResyncOptions): Promise<void> {
  const { store, incarnation, signal, onError, onLost, retryMs = 1_000 } = options;
  await store.synced;
  for (let reason = "leadership acquired"; ;) {
    // Before the first request, to notice a loss during the first round as well.
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

/** Repeats failed requests: skipping one would lose the work of an earlier change. */
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
    // The maximum of setTimeout is 2^31 - 1 ms.
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
    // If Redis is unavailable, its loss is found when it is back.
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
