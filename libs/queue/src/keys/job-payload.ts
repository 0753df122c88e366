import { ensureError, KonvergeError, parseKey, type ObjectKey } from "@konverge/core";
import { UnrecoverableError } from "bullmq";

/** The payload of a job. Only the key: BullMQ drops the payload of a coalesced add. */
export interface JobPayload {
  readonly key: string;
}

/** The controller and cluster whose keys a queue serves. */
export interface QueueOwner {
  readonly controller: string;
  readonly cluster: string;
}

/** Longest error text. Payloads are untrusted. */
const MAX_CHARS = 200;

/** @throws KonvergeError `invalid_key` for a key of another queue, which would never run here. */
export function assertOwnKey(key: ObjectKey, { controller, cluster }: QueueOwner): void {
  if (key.controller === controller && key.cluster === cluster) return;
  throw new KonvergeError(
    "invalid_key",
    `key of controller "${key.controller}" on cluster "${key.cluster}" does not belong to the queue of ` +
      `"${controller}" on "${cluster}"`,
  );
}

/**
 * Returns the key of a job's payload. The payload is untrusted: every client of Redis can add jobs.
 * @throws UnrecoverableError for a job that Konverge did not add; a retry cannot succeed
 */
export function keyOfPayload(payload: unknown, owner: QueueOwner): ObjectKey {
  const { key: text } = (payload ?? {}) as { readonly key?: unknown };
  try {
    if (typeof text !== "string") throw new Error("its payload has no key");
    const key = parseKey(text);
    assertOwnKey(key, owner);
    return key;
  } catch (error) {
    const why = ensureError(error).message;
    const clipped = why.length > MAX_CHARS ? `${why.slice(0, MAX_CHARS)}...` : why;
    throw new UnrecoverableError(
      `job dropped, not a request of this queue: ${clipped}; make requests with the API, not with BullMQ`,
    );
  }
}
