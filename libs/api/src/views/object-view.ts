import type { ObjectHistory } from "@konverge/contracts";
import { formatKey, KonvergeError, namespaceField, type ObjectKey } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import type { AttemptRecord } from "@konverge/records";
import { keyItem } from "../queues/key-item.ts";
import { keyFor, type QueueAccess } from "../queues/queue-access.ts";
import { readRecord } from "../queues/read-record.ts";
import { readContention } from "./history-view.ts";

/** The number of attempts that the queue keeps per key. */
export const MAX_ATTEMPTS = 50;

/** The path parameters of an object. */
export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
}

/** Returns the object of the path parameters, without the namespace `_`. */
export function targetOf({ cluster, controller, namespace, name }: Target) {
  return {
    cluster,
    controller,
    ...namespaceField(namespace),
    name,
  };
}

export async function findKey(
  access: QueueAccess,
  target: Target,
): Promise<{ readonly queue: WorkQueue; readonly key: ObjectKey }> {
  const { queue, announced } = await access.find(target.cluster, target.controller);
  return { queue, key: keyFor(announced, targetOf(target)) };
}

export async function readAttempts(access: QueueAccess, target: Target): Promise<AttemptRecord[]> {
  const { queue, key } = await findKey(access, target);
  const stored = await queue.listAttempts(key, { limit: MAX_ATTEMPTS });
  return stored.map((attempt) => readRecord(formatKey(key), queue.controller, attempt));
}

export async function readHistory(access: QueueAccess, target: Target): Promise<ObjectHistory> {
  const { queue, key } = await findKey(access, target);
  const [state, stored, contention] = await Promise.all([
    queue.getKey(key),
    queue.listAttempts(key, { limit: MAX_ATTEMPTS }),
    readContention(access, key),
  ]);
  if (state === undefined) {
    throw new KonvergeError("not_found", `no requests found for ${formatKey(key)}`);
  }
  return {
    ...keyItem(state),
    attempts: stored.map((attempt) => readRecord(state.key, queue.controller, attempt)),
    contention,
  };
}
