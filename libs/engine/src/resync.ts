import { ensureError, sleepMs } from "@konverge/core";
import type { Controller } from "./define-controller.ts";
import type { ObjectStore } from "./object-cache.ts";
import type { RequestSource } from "./request-source.ts";

export interface ResyncOptions {
  readonly controller: Controller;
  readonly store: ObjectStore;
  readonly source: RequestSource;
  readonly signal: AbortSignal;
  /** Told of each request that Redis did not take. */
  readonly onError: (error: Error) => void;
  /** Wait after such a request. */
  readonly retryMs?: number;
}

/**
 * Requests every object at once when leadership begins, then once per resync interval, spread over it. A request that
 * fails is repeated: to skip it would lose the work that the change before it announced.
 */
export async function runResync(options: ResyncOptions): Promise<void> {
  const { controller, store, source, signal, onError, retryMs = 1_000 } = options;
  await store.synced;
  let reason = "producer elected";
  let pauseMs = 0;
  while (!signal.aborted) {
    const objects = [...store.list()];
    for (const object of objects) {
      for (;;) {
        if (signal.aborted) return;
        if (pauseMs > 0) await sleepMs(pauseMs, signal);
        try {
          await source.resync(object, reason);
          break;
        } catch (error) {
          onError(ensureError(error));
          await sleepMs(retryMs, signal);
        }
      }
    }
    reason = "resync interval";
    // setTimeout holds at most 2^31 - 1 ms.
    pauseMs = Math.min(controller.resyncMs / Math.max(1, store.list().length), 2 ** 31 - 1);
    if (store.list().length === 0) await sleepMs(Math.min(controller.resyncMs, 60_000), signal);
  }
}
