import { ensureError, KonvergeError, parseKey, type ObjectKey } from "@konverge/core";
import { UnrecoverableError } from "bullmq";

/** The payload of a job: the key and nothing else, since what a coalesced add carries is dropped. */
export interface JobPayload {
  readonly key: string;
}

/** Whose keys a queue serves. */
export interface QueueOwner {
  readonly controller: string;
  readonly cluster: string;
}

/** Longest text of a mistake: payloads come from anywhere. */
const MAX_CHARS = 200;

/** @throws KonvergeError `invalid_key` for a key of another queue: it would never run here. */
export function assertOwnKey(key: ObjectKey, { controller, cluster }: QueueOwner): void {
  if (key.controller === controller && key.cluster === cluster) return;
  throw new KonvergeError(
    "invalid_key",
    `key of controller "${key.controller}" on cluster "${key.cluster}" does not belong to the queue of ` +
      `"${controller}" on "${cluster}"`,
  );
}

/**
 * The key of a job's payload, which may be anything: whoever reaches Redis can add jobs.
 * @throws UnrecoverableError for one that no request of ours has made, since it is as wrong the next time
 */
export function keyOfPayload(payload: unknown, owner: QueueOwner): ObjectKey {
  const { key: text } = (payload ?? {}) as { readonly key?: unknown };
  try {
    if (typeof text !== "string") throw new Error("its data has no key");
    const key = parseKey(text);
    assertOwnKey(key, owner);
    return key;
  } catch (error) {
    const why = ensureError(error).message;
    const clipped = why.length > MAX_CHARS ? `${why.slice(0, MAX_CHARS)}...` : why;
    throw new UnrecoverableError(
      `a job that is not a request of this queue was dropped: ${clipped}; add requests by the API, not by BullMQ`,
    );
  }
}
