import { defined, namespaceSegment } from "@konverge/core";
import {
  controllerListSchema,
  clusterQuerySchema,
  deadLetterQuerySchema,
  keyListSchema,
  keyQuerySchema,
  operatorActionListSchema,
  operatorActionSchema,
  operatorActionsQuerySchema,
  pauseListSchema,
  pauseActionSchema,
  pausesQuerySchema,
  queueListSchema,
  releaseResponseSchema,
  releaseActionSchema,
  resumeResponseSchema,
  workerListSchema,
  type KeyList,
  type KeyListQuery,
  type PauseList,
  type PauseAction,
  type QueueList,
} from "@konverge/contracts";
import { queueOfWorkflow } from "@konverge/workflow";
import { covers, demand, demandSome, touches, type Caller } from "../access/caller.ts";
import { pauseView } from "../queues/key-item.ts";
import { placeNamed, placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import type { QueueDesk } from "../queues/queue-desk.ts";
import { route, type Route, type RouteInput } from "../http/route.ts";

/** Those of a caller's scope. Pauses of more than the scope hold its objects back as well. */
export function visiblePauses({ scope }: Caller, cluster: string, { items }: PauseList): PauseList {
  return {
    items: items.filter(({ controller, scope: paused }) =>
      touches(
        scope,
        paused.kind === "key"
          ? placeOf(paused.key)
          : {
              cluster,
              controller,
              namespace: paused.kind === "namespace" ? paused.namespace : undefined,
            },
      ),
    ),
  };
}

/** Keys in a caller's scope. */
export async function listKeys(
  desk: QueueDesk,
  caller: Caller,
  query: KeyListQuery,
): Promise<KeyList> {
  const { cluster, controller, namespace } = query;
  demandSome(caller, { cluster, controller, namespace });
  const { items, ...rest } = await desk.listKeys(query);
  return { items: items.filter(({ key }) => covers(caller.scope, placeOf(key))), ...rest };
}

type Audit = RouteInput<string, unknown, unknown>["audit"];

/** The same order below `/v1/pauses`, a queue and an object. */
export function pauseActions(desk: QueueDesk): {
  pause(caller: Caller, action: PauseAction, audit: Audit): Promise<PauseList>;
  resume(caller: Caller, action: PauseAction, audit: Audit): Promise<{ resumed: number }>;
} {
  const noteOf = ({ cluster, controller, namespace, name, reason }: PauseAction) => ({
    cluster,
    ...defined({ controller, namespace }),
    ...(name === undefined ? {} : { name, namespace: namespaceSegment(namespace) }),
    reason,
  });
  return {
    async pause(caller, action, audit) {
      demand(caller, placeNamed(action));
      const list = await desk.pause(action);
      audit({ action: "pause", ...noteOf(action) }, action.by);
      return visiblePauses(caller, action.cluster, list);
    },
    async resume(caller, action, audit) {
      demand(caller, placeNamed(action));
      const answer = await desk.resume(action);
      audit({ action: "resume", ...noteOf(action), count: answer.resumed }, action.by);
      return answer;
    },
  };
}

/** What is known of controllers, workers, keys and pauses, and the orders to them. `home` is the cluster asked for by default. */
export function queueRoutes(access: QueueAccess, desk: QueueDesk, home: string): Route[] {
  const actions = pauseActions(desk);
  const ofQueue = (
    { cluster, controller }: { readonly cluster: string; readonly controller: string },
    action: { readonly by: string; readonly reason: string },
  ): PauseAction => ({ cluster, controller, ...action });
  return [
    route({
      id: "listControllers",
      method: "get",
      path: "/v1/controllers",
      summary: "The controllers that workers have announced",
      role: "viewer",
      query: clusterQuerySchema,
      answer: controllerListSchema,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        const items = await access.controllers(cluster);
        return {
          items: items.filter(({ name }) => touches(caller.scope, { cluster, controller: name })),
        };
      },
    }),
    route({
      id: "listWorkers",
      method: "get",
      path: "/v1/workers",
      summary: "The workers that live",
      role: "viewer",
      query: clusterQuerySchema,
      answer: workerListSchema,
      async handle({ query: { cluster = home }, caller }) {
        demandSome(caller, { cluster });
        return { items: await access.workers(cluster) };
      },
    }),
    route({
      id: "listQueues",
      method: "get",
      path: "/v1/queues",
      summary: "How much waits for each controller, and what holds it back",
      role: "viewer",
      query: clusterQuerySchema,
      answer: queueListSchema,
      async handle({ query: { cluster = home }, caller }): Promise<QueueList> {
        demandSome(caller, { cluster });
        const [controllers, workflows, workers] = await Promise.all([
          access.controllers(cluster),
          access.workflows(cluster),
          access.workers(cluster),
        ]);
        const ofRuns = workflows
          .filter(({ name }) =>
            touches(caller.scope, { cluster, controller: queueOfWorkflow(name) }),
          )
          .map(async ({ name: workflow }) => {
            const queue = await access.workflowQueue(cluster, workflow);
            const { waiting, active, delayed } = await queue.counts();
            const has = workers.filter((worker) => worker.workflows?.[workflow] !== undefined);
            return { cluster, workflow, waiting, active, delayed, workers: has.length };
          });
        const seen = controllers.filter(({ name }) =>
          touches(caller.scope, { cluster, controller: name }),
        );
        const items = seen.map(async ({ name: controller, kind }) => {
          const { queue } = await access.find(cluster, controller);
          const [counts, pauses] = await Promise.all([queue.counts(), queue.control.listPauses()]);
          const views = pauses.map((pause) => ({ controller, ...pauseView(pause) }));
          const visible = visiblePauses(caller, cluster, { items: views }).items;
          return {
            cluster,
            controller,
            kind,
            ...counts,
            workers: workers.filter((worker) => worker.controllers.includes(controller)).length,
            pauses: visible.map(({ scope, by, reason, since }) => ({ scope, by, reason, since })),
          };
        });
        return { items: await Promise.all(items), workflows: await Promise.all(ofRuns) };
      },
    }),
    route({
      id: "pauseQueue",
      method: "post",
      path: "/v1/queues/{cluster}/{controller}/pause",
      summary: "Start nothing of a controller any more",
      role: "operator",
      isOperatorAction: true,
      body: operatorActionSchema,
      answer: pauseListSchema,
      problems: ["unknown_controller"],
      handle: ({ params, body, caller, audit }) =>
        actions.pause(caller, ofQueue(params, body), audit),
    }),
    route({
      id: "resumeQueue",
      method: "post",
      path: "/v1/queues/{cluster}/{controller}/resume",
      summary: "End the pause of a controller",
      role: "operator",
      isOperatorAction: true,
      body: operatorActionSchema,
      answer: resumeResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ params, body, caller, audit }) =>
        actions.resume(caller, ofQueue(params, body), audit),
    }),
    route({
      id: "listKeys",
      method: "get",
      path: "/v1/keys",
      summary: "Keys by phase, namespace and part of their name",
      role: "viewer",
      query: keyQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      handle: ({ query, caller }) => listKeys(desk, caller, query),
    }),
    route({
      id: "listPauses",
      method: "get",
      path: "/v1/pauses",
      summary: "What is paused, by whom, why and since when",
      role: "viewer",
      query: pausesQuerySchema,
      answer: pauseListSchema,
      async handle({ query: { cluster }, caller }) {
        demandSome(caller, { cluster });
        return visiblePauses(caller, cluster, await desk.listPauses(cluster));
      },
    }),
    route({
      id: "pause",
      method: "post",
      path: "/v1/pauses",
      summary: "Start nothing of an object, a namespace or a controller any more",
      role: "operator",
      isOperatorAction: true,
      body: pauseActionSchema,
      answer: pauseListSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ body, caller, audit }) => actions.pause(caller, body, audit),
    }),
    route({
      id: "resume",
      method: "post",
      path: "/v1/pauses/resume",
      summary: "End a pause of the same scope",
      role: "operator",
      isOperatorAction: true,
      body: pauseActionSchema,
      answer: resumeResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ body, caller, audit }) => actions.resume(caller, body, audit),
    }),
    route({
      id: "listDeadLetters",
      method: "get",
      path: "/v1/dead-letters",
      summary: "Keys that nobody tries any more, and why",
      role: "viewer",
      query: deadLetterQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      handle: ({ query, caller }) => listKeys(desk, caller, { ...query, phase: "deadLettered" }),
    }),
    route({
      id: "releaseDeadLetters",
      method: "post",
      path: "/v1/dead-letters/release",
      summary: "Request one dead key, or all that match; a dry run only counts them",
      role: "operator",
      isOperatorAction: true,
      body: releaseActionSchema,
      answer: releaseResponseSchema,
      problems: ["unknown_controller", "not_found"],
      async handle({ body, caller, audit }) {
        demand(caller, placeNamed(body));
        const answer = await desk.release(body, caller.via === "process" ? "cli" : "http");
        const { cluster, controller, namespace, name, contains, reason, by } = body;
        if (!body.dryRun) {
          audit(
            {
              action: "release",
              cluster,
              controller,
              ...defined({ namespace }),
              ...(name === undefined ? {} : { name, namespace: namespaceSegment(namespace) }),
              ...(contains === undefined ? {} : { filter: `name contains ${contains}` }),
              reason,
              count: answer.count,
            },
            by,
          );
        }
        return answer;
      },
    }),
    route({
      id: "listOperatorActions",
      method: "get",
      path: "/v1/operator-actions",
      summary: "What people ordered of a controller, newest first",
      role: "viewer",
      query: operatorActionsQuerySchema,
      answer: operatorActionListSchema,
      problems: ["unknown_controller"],
      async handle({ query, caller }) {
        demand(caller, query);
        return await desk.listOperatorActions(query.cluster, query.controller);
      },
    }),
  ];
}
