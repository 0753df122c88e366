import {
  defined,
  ensureError,
  resourceId,
  sleepMs,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import type { WatchedObjects } from "../access/object-store.ts";
import type { Controller } from "../define/define-controller.ts";

export interface RequestVanishedOptions {
  readonly controller: Controller;
  readonly store: WatchedObjects;
  /** False if the store does not have the objects of a namespace yet. Default: it has them all. */
  readonly isListed?: (namespace: string | undefined) => boolean;
  /** The versions that the watches of this process have reached for a namespace. */
  readonly seen?: (namespace: string | undefined) => NonNullable<Trigger["seen"]>;
  readonly queue: Pick<WorkQueue, "listKeys" | "submit">;
  readonly signal: AbortSignal;
  /** Receives the error of each try. */
  readonly onError: (error: Error) => void;
  /** Delay before the next try, in ms. Default 5 s. */
  readonly retryMs?: number;
}

/**
 * Enqueues the keys whose object does not exist. A deletion that no leader watched leaves a key without an event: it would stay
 * in Redis, and among the dead letters. Its attempt finds no object, and the key expires.
 */
export async function requestVanished(options: RequestVanishedOptions): Promise<void> {
  const { store, signal, onError, retryMs = 5_000 } = options;
  await store.synced;
  while (!signal.aborted) {
    try {
      return await requestEach(options);
    } catch (error) {
      onError(ensureError(error));
      await sleepMs(retryMs, signal);
    }
  }
}

async function requestEach(options: RequestVanishedOptions) {
  const { controller, store, isListed = () => true, seen, queue, signal } = options;
  const id = resourceId(controller.for);
  const isVanished = (key: ObjectKey) =>
    resourceId(key) === id &&
    isListed(key.namespace) &&
    store.get(key.namespace, key.name) === undefined;
  for await (const keys of queue.listKeys()) {
    const vanished = keys.filter(isVanished);
    if (signal.aborted) return;
    await Promise.all(
      vanished.map((key) =>
        queue.submit(
          key,
          {
            kind: "resync",
            by: "resync",
            reason: "the object does not exist",
            ...defined({ seen: seen?.(key.namespace) }),
          },
          { class: "background", isDeleted: true },
        ),
      ),
    );
  }
}
