import {
  operatorActionSchema,
  retryRunSchema,
  runListSchema,
  runQuerySchema,
  runSchema,
  runWaitQuerySchema,
  scheduleListSchema,
  scheduleQuerySchema,
  signalRunSchema,
  startRunResponseSchema,
  startRunSchema,
  type RunDetail,
  type RunList,
  type RunListQuery,
  type ScheduleList,
} from "@konverge/contracts";
import { defined, isKonvergeError, KonvergeError, NO_NAMESPACE } from "@konverge/core";
import { formatRunId, parseRunId, queueOfWorkflow } from "@konverge/workflow";
import { demand, touches, type Caller } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { route, type Route } from "../http/route.ts";
import { startOnce } from "./start-once.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";
import { waitForRun } from "./wait-for-run.ts";
import { formatCursor, parseCursor, runDetail, runItem, scheduleItem } from "../views/run-view.ts";

/** For an input or a payload of 64 KiB and what is around it. */
const MAX_BODY_KIB = 72;

/** Runs of workflows: started by name, seen, signalled, cancelled. */
export function runRoutes(access: QueueAccess): Route[] {
  const find = async (caller: Caller, text: string) => {
    const { cluster, ...ref } = parseRunId(text);
    demand(caller, placeIn(cluster, ref.workflow));
    const { workflows: runs, announced } = await access.runs(cluster);
    return { cluster, ref, runs, announced };
  };
  const read = async (found: Awaited<ReturnType<typeof find>>) => {
    const { cluster, ref, runs } = found;
    const run = await runs.get(ref);
    if (run === undefined) {
      const text = formatRunId(ref, cluster);
      throw new KonvergeError("not_found", `there is no run ${text}, or it is kept no more`);
    }
    const [steps, unconsumedSignals] = await Promise.all([
      runs.steps(ref),
      runs.unconsumedSignals(ref),
    ]);
    return runDetail(run, cluster, { steps, unconsumedSignals });
  };
  return [
    route({
      id: "startRun",
      method: "post",
      path: "/v1/runs",
      summary: "Start a run of a workflow",
      role: "operator",
      isOperatorAction: true,
      body: startRunSchema,
      maxBodyKiB: MAX_BODY_KIB,
      answer: startRunResponseSchema,
      status: 202,
      problems: ["not_found", "run_exists"],
      async handle({ body, caller, context, headers, audit }) {
        const { workflow, cluster, input, id, key, by, onExisting } = body;
        demand(caller, placeIn(cluster, workflow));
        const { workflows, announced } = await access.runs(cluster);
        const version = announced.get(workflow);
        if (version === undefined) throw unknownWorkflow(cluster, workflow, announced);
        const start = (named: { readonly id?: string }) =>
          fitting("/input", () =>
            workflows.start({ name: workflow, version }, input, {
              onExisting,
              ...named,
              ...defined({ key, by }),
            }),
          );
        const once = context.req.header("idempotency-key");
        const started =
          id !== undefined || once === undefined
            ? await start(id === undefined ? {} : { id })
            : await startOnce([caller.id, once, body], (derived) => start({ id: derived }));
        audit({ action: "run.start", ...placeIn(cluster, workflow), name: started.id }, by);
        const { created } = started;
        const answer = { created, id: formatRunId({ workflow, id: started.id }, cluster) };
        headers["location"] = `/v1/runs/${encodeURIComponent(answer.id)}`;
        return answer;
      },
    }),
    route({
      id: "listRuns",
      method: "get",
      path: "/v1/runs",
      summary: "Runs, newest first, by workflow, status, key, who started them, part of a name",
      role: "viewer",
      query: runQuerySchema,
      answer: runListSchema,
      problems: ["not_found"],
      handle: ({ query, caller }) => listRuns(access, caller, query),
    }),
    route({
      id: "listSchedules",
      method: "get",
      path: "/v1/schedules",
      summary: "What starts runs by the clock, and when next",
      role: "viewer",
      query: scheduleQuerySchema,
      answer: scheduleListSchema,
      problems: ["not_found"],
      async handle({ query: { cluster }, caller }): Promise<ScheduleList> {
        const { workflows } = await access.runs(cluster);
        const schedules = await workflows.schedules();
        const seen = schedules.filter(({ workflow }) =>
          touches(caller.scope, placeIn(cluster, workflow)),
        );
        return { items: seen.map((schedule) => scheduleItem(schedule, cluster)) };
      },
    }),
    route({
      id: "getRun",
      method: "get",
      path: "/v1/runs/{id}",
      summary:
        "How a run stands: its steps, what it waits for, how it ended; `wait` or `Prefer: wait=20` waits for its end",
      role: "viewer",
      query: runWaitQuerySchema,
      headers: { prefer: "wait=20 waits up to 20 s (at most 60) for the end" },
      answer: runSchema,
      problems: ["not_found"],
      async handle({
        params,
        query: { wait, lastState },
        caller,
        context,
        waiting,
      }): Promise<RunDetail> {
        const found = await find(caller, params.id);
        const waitMs = wait ?? preferredWaitMs(context);
        await waitForRun(found.runs, found.ref, { waitMs, lastState, signal: waiting() });
        return await read(found);
      },
    }),
    route({
      id: "signalRun",
      method: "post",
      path: "/v1/runs/{id}/signal",
      summary: "Send a signal, also before the run waits for it; who sent it stands in its steps",
      role: "operator",
      isOperatorAction: true,
      body: signalRunSchema,
      maxBodyKiB: MAX_BODY_KIB,
      answer: runSchema,
      problems: ["not_found", "run_ended", "queue_full"],
      async handle({ params, body: { name, payload, id, by }, caller, audit }) {
        const found = await find(caller, params.id);
        const { runs, ref, cluster } = found;
        const message = { payload, by, ...defined({ id }) };
        await fitting("/payload", () => runs.signal(ref, name, message));
        const where = { ...placeIn(cluster, ref.workflow), name: ref.id };
        audit({ action: "run.signal", ...where, filter: name }, by);
        return await read(found);
      },
    }),
    route({
      id: "cancelRun",
      method: "post",
      path: "/v1/runs/{id}/cancel",
      summary: "Cancel a run; what it did is undone",
      role: "operator",
      isOperatorAction: true,
      body: operatorActionSchema,
      answer: runSchema,
      problems: ["not_found", "run_ended"],
      async handle({ params: { id }, body, caller, audit }) {
        const found = await find(caller, id);
        const { runs, ref, cluster } = found;
        await runs.cancel(ref, body);
        const where = { ...placeIn(cluster, ref.workflow), name: ref.id };
        audit({ action: "run.cancel", ...where, reason: body.reason }, body.by);
        return await read(found);
      },
    }),
    route({
      id: "retryRun",
      method: "post",
      path: "/v1/runs/{id}/retry",
      summary:
        "Begin a failed or cancelled run anew, or go on from what failed; look at a stuck one at once. Answers the run that goes on",
      role: "operator",
      isOperatorAction: true,
      body: retryRunSchema,
      answer: runSchema,
      problems: ["not_found", "run_active", "run_ended", "run_exists", "run_compensated"],
      async handle({ params: { id }, body, caller, headers, audit }) {
        const found = await find(caller, id);
        const { runs, ref, cluster, announced } = found;
        const version = announced.get(ref.workflow);
        const next = await runs.retry(ref, {
          ...body,
          ...defined({ version }),
        });
        const where = { ...placeIn(cluster, ref.workflow), name: ref.id };
        audit({ action: "run.retry", ...where, reason: body.reason }, body.by);
        headers["location"] = `/v1/runs/${encodeURIComponent(formatRunId(next, cluster))}`;
        return await read({ ...found, ref: next });
      },
    }),
  ];
}

async function listRuns(
  access: QueueAccess,
  caller: Caller,
  { cluster, workflow, limit, cursor, status, key, by, search }: RunListQuery,
): Promise<RunList> {
  if (workflow !== undefined) demand(caller, placeIn(cluster, workflow));
  const { workflows, announced } = await access.runs(cluster);
  if (workflow !== undefined && !announced.has(workflow)) {
    throw unknownWorkflow(cluster, workflow, announced);
  }
  const seen =
    workflow === undefined
      ? [...announced.keys()].filter((name) => touches(caller.scope, placeIn(cluster, name)))
      : [workflow];
  const page = await workflows.list(seen, {
    limit,
    filter: {
      ...defined({ status, key, by, text: search }),
    },
    ...(cursor === undefined ? {} : { from: parseCursor(cursor) }),
  });
  const items = page.runs.map((run) => runItem(run, cluster));
  return { items, ...(page.next === undefined ? {} : { next: formatCursor(page.next) }) };
}

/** Scopes have the name of a workflow's queue among their controllers; runs are in no namespace. */
function placeIn(cluster: string, workflow: string) {
  return { cluster, controller: queueOfWorkflow(workflow), namespace: NO_NAMESPACE };
}

function unknownWorkflow(
  cluster: string,
  workflow: string,
  announced: ReadonlyMap<string, number>,
): KonvergeError {
  const known = [...announced.keys()].join(", ") || "none yet";
  const detail = `no worker has announced a workflow "${workflow}" on cluster "${cluster}"; known: ${known}`;
  return new KonvergeError("not_found", detail);
}

/** What cannot be recorded is the caller's mistake here, and not a step's. */
async function fitting<T>(pointer: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isKonvergeError(error) || error.code !== "invalid_result") throw error;
    const issues = [{ pointer, detail: error.message }];
    throw new KonvergeError("invalid_request", error.message, { issues, cause: error });
  }
}
