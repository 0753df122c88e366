import {
  acceptedReconcileSchema,
  contentionSchema,
  objectAttemptsSchema,
  objectHistorySchema,
  operatorActionSchema,
  pauseListSchema,
  reconcileNowSchema,
  resumeResponseSchema,
  type ObjectHistory,
} from "@konverge/contracts";
import { attemptRecordSchema, type AttemptRecord } from "@konverge/records";
import { formatKey, KonvergeError, namespaceField, type ObjectKey } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import { demand } from "../access/caller.ts";
import { readContention } from "./history-routes.ts";
import { keyItem } from "../queues/key-item.ts";
import { keyFor, type QueueAccess } from "../queues/queue-access.ts";
import type { QueueDesk } from "../queues/queue-desk.ts";
import { pauseActions } from "./queue-routes.ts";
import { readRecord } from "../queues/read-record.ts";
import { PREFER, requestOne } from "./reconcile-routes.ts";
import { route, type Route } from "../http/route.ts";

/** As many as the queue keeps of a key. */
const MAX_ATTEMPTS = 50;
const PATH = "/v1/objects/{cluster}/{controller}/{namespace}/{name}";

/** One object of a controller; `_` is the namespace of cluster-scoped ones. */
export function objectRoutes(access: QueueAccess, desk: QueueDesk): Route[] {
  const actions = pauseActions(desk);
  return [
    route({
      id: "getObject",
      method: "get",
      path: PATH,
      summary: "How an object stands, and its last attempts",
      role: "viewer",
      answer: objectHistorySchema,
      problems: ["unknown_controller", "not_found", "invalid_request"],
      async handle({ params, caller }) {
        demand(caller, params);
        return await readHistory(access, params);
      },
    }),
    route({
      id: "getContention",
      method: "get",
      path: `${PATH}/contention`,
      summary: "Who fights over an object, and whether it is slowed down for it",
      role: "viewer",
      answer: contentionSchema,
      problems: ["unknown_controller", "invalid_request"],
      async handle({ params, caller }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await readContention(access, key);
      },
    }),
    route({
      id: "listObjectAttempts",
      method: "get",
      path: `${PATH}/attempts`,
      summary: "The last attempts of an object, newest first",
      role: "viewer",
      answer: objectAttemptsSchema,
      problems: ["unknown_controller", "invalid_request"],
      async handle({ params, caller }) {
        demand(caller, params);
        return { items: await readAttempts(access, params) };
      },
    }),
    route({
      id: "getAttempt",
      method: "get",
      path: `${PATH}/attempts/{epoch}`,
      summary: "One attempt of an object",
      role: "viewer",
      answer: attemptRecordSchema,
      problems: ["unknown_controller", "not_found", "invalid_request"],
      async handle({ params: { epoch, ...target }, caller }) {
        demand(caller, target);
        const found = (await readAttempts(access, target)).find(
          (attempt) => String(attempt.epoch) === epoch,
        );
        if (found !== undefined) return found;
        const detail = `the last ${MAX_ATTEMPTS} attempts are kept, and "${epoch}" is none of them`;
        throw new KonvergeError("not_found", detail);
      },
    }),
    route({
      id: "reconcileObject",
      method: "post",
      path: `${PATH}/reconcile`,
      summary: "Reconcile an object now",
      role: "operator",
      body: reconcileNowSchema,
      headers: PREFER,
      answer: acceptedReconcileSchema,
      status: 202,
      problems: ["unknown_controller", "queue_full"],
      handle: ({ params, body, ...asked }) =>
        requestOne(access, { ...targetOf(params), ...body }, asked),
    }),
    route({
      id: "pauseObject",
      method: "post",
      path: `${PATH}/pause`,
      summary: "Start nothing of an object any more",
      role: "operator",
      isOperatorAction: true,
      body: operatorActionSchema,
      answer: pauseListSchema,
      problems: ["unknown_controller"],
      handle: ({ params, body, caller, audit }) =>
        actions.pause(caller, { ...targetOf(params), ...body }, audit),
    }),
    route({
      id: "resumeObject",
      method: "post",
      path: `${PATH}/resume`,
      summary: "End the pause of an object",
      role: "operator",
      isOperatorAction: true,
      body: operatorActionSchema,
      answer: resumeResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ params, body, caller, audit }) =>
        actions.resume(caller, { ...targetOf(params), ...body }, audit),
    }),
  ];
}

interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
}

function targetOf({ cluster, controller, namespace, name }: Target) {
  return {
    cluster,
    controller,
    ...namespaceField(namespace),
    name,
  };
}

async function findKey(
  access: QueueAccess,
  target: Target,
): Promise<{ readonly queue: WorkQueue; readonly key: ObjectKey }> {
  const { queue, announced } = await access.find(target.cluster, target.controller);
  return { queue, key: keyFor(announced, targetOf(target)) };
}

async function readAttempts(access: QueueAccess, target: Target): Promise<AttemptRecord[]> {
  const { queue, key } = await findKey(access, target);
  const stored = await queue.listAttempts(key, { limit: MAX_ATTEMPTS });
  return stored.map((attempt) => readRecord(formatKey(key), queue.controller, attempt));
}

async function readHistory(access: QueueAccess, target: Target): Promise<ObjectHistory> {
  const { queue, key } = await findKey(access, target);
  const [state, stored] = await Promise.all([
    queue.getKey(key),
    queue.listAttempts(key, { limit: MAX_ATTEMPTS }),
  ]);
  if (state === undefined) {
    throw new KonvergeError("not_found", `nothing was ever requested for ${formatKey(key)}`);
  }
  return {
    ...keyItem(state),
    attempts: stored.map((attempt) => readRecord(state.key, queue.controller, attempt)),
  };
}
