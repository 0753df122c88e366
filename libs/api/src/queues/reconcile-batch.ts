import type { CreateReconcile, ReconcileResults, RequestedClass } from "@konverge/contracts";
import { isKonvergeError, type KonvergeError, type Trigger } from "@konverge/core";
import type { RequestItem, WorkQueue } from "@konverge/queue";
import { problemOf } from "../http/problem.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";

type Result = ReconcileResults["items"][number];

/** Requests many objects of any controllers, with one result each. Rejected items do not affect the others. */
export async function requestBatch(
  access: QueueAccess,
  bodies: readonly CreateReconcile[],
  {
    trigger,
    check,
  }: {
    readonly trigger: Trigger;
    /** Returns the class of an item. Throws if the caller lacks permission. */
    readonly check: (body: CreateReconcile) => RequestedClass;
  },
): Promise<ReconcileResults> {
  const results: Result[] = [];
  const found = new Map<string, ReturnType<QueueAccess["find"]>>();
  const parts = new Map<WorkQueue, { readonly index: number; readonly item: RequestItem }[]>();
  const refused: KonvergeError[] = [];
  const refuse = (index: number, error: KonvergeError) => {
    refused.push(error);
    results[index] = { error: problemOf(error) };
  };
  for (const [index, body] of bodies.entries()) {
    try {
      const requestClass = check(body);
      const id = JSON.stringify([body.cluster, body.controller]);
      const opening = found.get(id) ?? access.find(body.cluster, body.controller);
      found.set(id, opening);
      const { queue, announced } = await opening;
      const { reason } = body;
      const item: RequestItem = {
        key: keyFor(announced, body),
        trigger: reason === undefined ? trigger : { ...trigger, reason },
        options: { class: requestClass },
      };
      const part = parts.get(queue) ?? [];
      part.push({ index, item });
      parts.set(queue, part);
    } catch (error) {
      if (!isKonvergeError(error)) throw error;
      refuse(index, error);
    }
  }
  for (const [queue, part] of parts) {
    const answers = await queue.requestMany(part.map(({ item }) => item));
    for (const [at, answer] of answers.entries()) {
      const index = part[at]?.index ?? at;
      if (answer.kind === "refused") {
        refuse(index, answer.error);
      } else {
        const { id, key, coalesced } = answer.accepted;
        results[index] = { id, key, coalesced };
      }
    }
  }
  const [away] = refused;
  // Every item failed because of Redis, not because of its content.
  if (refused.length === bodies.length && away?.code === "redis_unavailable") throw away;
  return { accepted: bodies.length - refused.length, items: results };
}
