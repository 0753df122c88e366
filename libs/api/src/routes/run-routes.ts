import {
  runHistoryListSchema,
  runHistoryQuerySchema,
  runHistorySchema,
  runListSchema,
  runLogSchema,
  runQuerySchema,
  runSchema,
  runWaitQuerySchema,
  startRunResponseSchema,
  startRunSchema,
  type StartRun,
  type StartRunResponse,
} from "@konverge/contracts";
import { defined } from "@konverge/core";
import { formatRunId } from "@konverge/workflow";
import { demand } from "../access/caller.ts";
import { traceparentOf } from "../http/traceparent-of.ts";
import { actionRoute, readRoute, type Route, type RouteInput } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";
import {
  checkEncodable,
  findRun,
  fitting,
  listRuns,
  placeIn,
  readRun,
  unknownWorkflow,
} from "../runs/find-run.ts";
import { listHistories, readHistory } from "../runs/run-histories.ts";
import { logLine } from "../runs/run-view.ts";
import { startOnce } from "../runs/start-once.ts";
import { waitForRun } from "../runs/wait-for-run.ts";

/** An input of 64 KiB and its envelope. */
const MAX_BODY_KIB = 72;

/** Runs of workflows. */
export function runRoutes(access: QueueAccess): Route[] {
  return [
    actionRoute({
      id: "startRun",
      path: "/v1/runs",
      summary: "Start a run of a workflow",
      body: startRunSchema,
      maxBodyKiB: MAX_BODY_KIB,
      headers: { traceparent: "W3C trace context, linked to the first execution" },
      answer: startRunResponseSchema,
      status: 202,
      problems: ["not_found", "run_exists", "input_mismatch", "queue_full", "codec_missing"],
      handle: ({ body, ...asked }) => startRun(access, body, asked),
    }),
    readRoute({
      id: "listRuns",
      path: "/v1/runs",
      summary:
        "List runs by workflow, status, label, time, version, error, key, author or substring, newest first",
      query: runQuerySchema,
      answer: runListSchema,
      problems: ["not_found"],
      handle: ({ query, caller }) => listRuns(access, caller, query),
    }),
    readRoute({
      id: "getRun",
      path: "/v1/runs/{id}",
      summary:
        "Get the status, steps, waits and result of a run; `wait` or `Prefer: wait=20` waits for its end",
      query: runWaitQuerySchema,
      headers: { prefer: "wait=20 waits up to 20 s (maximum 60) for the end" },
      answer: runSchema,
      problems: ["not_found"],
      async handle({ params, query: { wait: waitMs, lastState }, caller, context, openWait }) {
        const found = await findRun(access, caller, params.id);
        using wait = openWait(waitMs ?? preferredWaitMs(context));
        await waitForRun(found.workflows, found.ref, { id: params.id, lastState, wait });
        return await readRun(found);
      },
    }),
    readRoute({
      id: "getRunHistory",
      path: "/v1/runs/{id}/history",
      summary: "Get the input and all records of a run, to replay it with other code",
      answer: runHistorySchema,
      problems: ["not_found"],
      handle: async ({ params, caller }) =>
        await readHistory(await findRun(access, caller, params.id)),
    }),
    readRoute({
      id: "listRunHistories",
      path: "/v1/run-histories",
      summary: "List the histories of the runs of a workflow, newest first",
      query: runHistoryQuerySchema,
      answer: runHistoryListSchema,
      problems: ["not_found"],
      handle: ({ query, caller }) => listHistories(access, caller, query),
    }),
    readRoute({
      id: "getRunLogs",
      path: "/v1/runs/{id}/logs",
      summary: "Get the last log lines of a run, oldest first",
      answer: runLogSchema,
      problems: ["not_found"],
      async handle({ params, caller }) {
        const { workflows, ref } = await findRun(access, caller, params.id);
        const lines = await workflows.logs(ref);
        return { items: lines.map(logLine) };
      },
    }),
  ];
}

async function startRun(
  access: QueueAccess,
  body: StartRun,
  {
    caller,
    context,
    headers,
    audit,
  }: Pick<RouteInput<string, unknown, unknown>, "caller" | "context" | "headers" | "audit">,
): Promise<StartRunResponse> {
  const { workflow, cluster, input, id, key, labels, by, onExisting } = body;
  demand(caller, placeIn(cluster, workflow));
  const { workflows, announced, codecs } = await access.runs(cluster);
  const version = announced.get(workflow);
  if (version === undefined) throw unknownWorkflow(caller, { cluster, workflow, announced });
  checkEncodable(access, codecs, { workflow, value: input, pointer: "/input" });
  const start = (runId: string | undefined) =>
    fitting("/input", () =>
      workflows.start({ name: workflow, version }, input, {
        onExisting,
        ...defined({ id: runId, key, labels, by, traceparent: traceparentOf(context) }),
      }),
    );
  const once = context.req.header("idempotency-key");
  const started =
    id !== undefined || once === undefined
      ? await start(id)
      : await startOnce([caller.id, once, body], start);
  audit({ action: "run.start", ...placeIn(cluster, workflow), name: started.id }, by);
  const { created } = started;
  const response = { created, id: formatRunId({ workflow, id: started.id }, cluster) };
  headers["location"] = `/v1/runs/${encodeURIComponent(response.id)}`;
  return response;
}
