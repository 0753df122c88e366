import {
  actOnRunsResponseSchema,
  actOnRunsSchema,
  cancelRunResponseSchema,
  operatorActionSchema,
  pauseRunResponseSchema,
  raiseRunSchema,
  retryRunSchema,
  runSchema,
  runUpdateSchema,
  signalRunSchema,
  updateRunSchema,
} from "@konverge/contracts";
import { defined } from "@konverge/core";
import { formatRunId } from "@konverge/workflow";
import { actionRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";
import { actOnRuns } from "../runs/act-on-runs.ts";
import { updateRun } from "../runs/update-run.ts";
import { checkEncodable, findRun, fitting, readRun } from "../runs/find-run.ts";
import { signalIdOf } from "../runs/signal-id.ts";

/** A payload of 64 KiB and its envelope. */
const MAX_BODY_KIB = 72;
/** Of an action on many runs, in simple requests: it may change thousands, or count all. */
const PRICE_OF_MANY = 100;

/** A change of one run by its author and reason. */
interface Control {
  readonly name: "cancel" | "pause" | "resume" | "terminate";
  readonly summary: string;
  readonly answer:
    | typeof runSchema
    | typeof cancelRunResponseSchema
    | typeof pauseRunResponseSchema;
}

const CONTROLS: readonly Control[] = [
  { name: "cancel", summary: "Cancel a run and undo its steps", answer: cancelRunResponseSchema },
  {
    name: "pause",
    summary: "Pause a run: running bodies end, and nothing begins until it is resumed",
    answer: pauseRunResponseSchema,
  },
  {
    name: "resume",
    summary: "Resume a paused run; signals and timers that came due take effect",
    answer: pauseRunResponseSchema,
  },
  {
    name: "terminate",
    summary:
      "End a run at once, without compensation; the response lists the recorded steps not undone",
    answer: runSchema,
  },
];

/** Signals, controls and retries of a run. */
export function runActionRoutes(access: QueueAccess): Route[] {
  return [
    actionRoute({
      id: "signalRun",
      path: "/v1/runs/{id}/signal",
      summary:
        "Send a signal to a run, even before the run waits for it; the step records the sender",
      body: signalRunSchema,
      maxBodyKiB: MAX_BODY_KIB,
      answer: runSchema,
      problems: ["not_found", "run_ended", "signals_full", "codec_missing"],
      async handle({ params, body: { name, payload, id: given, by }, caller, context, audit }) {
        const key = context.req.header("idempotency-key");
        const id = signalIdOf(caller.id, key, { name, id: given });
        const found = await findRun(access, caller, params.id);
        const { workflows, ref, codecs } = found;
        const { workflow } = ref;
        checkEncodable(access, codecs, { workflow, value: payload, pointer: "/payload" });
        const message = { payload, by, ...defined({ id }) };
        await fitting("/payload", () => workflows.signal(ref, name, message));
        audit({ action: "run.signal", ...found.place, filter: name }, by);
        return await readRun(found);
      },
    }),
    updateRoute(access),
    actionRoute({
      id: "actOnRuns",
      path: "/v1/runs/actions",
      summary:
        "Cancel, pause, resume, retry, signal or terminate all runs that match; a dry run counts them",
      body: actOnRunsSchema,
      maxBodyKiB: MAX_BODY_KIB,
      answer: actOnRunsResponseSchema,
      price: () => PRICE_OF_MANY,
      problems: ["not_found", "count_mismatch", "codec_missing"],
      handle: ({ body, ...acting }) =>
        fitting("/signal/payload", () => actOnRuns(access, body, acting)),
    }),
    ...CONTROLS.map((control) => controlRoute(access, control)),
    raiseRoute(access),
    actionRoute({
      id: "retryRun",
      path: "/v1/runs/{id}/retry",
      summary:
        "Retry a failed or cancelled run, or recheck a blocked one; returns the run that continues",
      body: retryRunSchema,
      answer: runSchema,
      problems: ["not_found", "run_active", "run_ended", "run_exists", "run_compensated"],
      async handle({ params: { id }, body, caller, headers, audit }) {
        const found = await findRun(access, caller, id);
        const { workflows, ref, cluster, announced } = found;
        const version = announced.get(ref.workflow);
        const { skipUndo, ...retry } = body;
        const next = await workflows.retry(ref, { ...retry, ...defined({ version, skipUndo }) });
        const kept =
          skipUndo === undefined
            ? "the same run"
            : `the same run, without the undo of "${skipUndo}"`;
        const filter = next.id === ref.id ? kept : `new run ${next.id}`;
        audit({ action: "run.retry", ...found.place, filter, reason: body.reason }, body.by);
        headers["location"] = `/v1/runs/${encodeURIComponent(formatRunId(next, cluster))}`;
        return await readRun({ workflows, cluster, ref: next });
      },
    }),
  ];
}

function updateRoute(access: QueueAccess): Route {
  return actionRoute({
    id: "updateRun",
    path: "/v1/runs/{id}/update",
    summary: "Send an update to a run; `Prefer: wait=20` waits for its answer",
    body: updateRunSchema,
    headers: { prefer: "wait=20 waits up to 20 s (maximum 60) for the answer" },
    maxBodyKiB: MAX_BODY_KIB,
    answer: runUpdateSchema,
    problems: ["not_found", "run_ended", "signals_full", "codec_missing"],
    async handle({ params, body, caller, context, openWait, audit }) {
      const found = await findRun(access, caller, params.id);
      const { workflow } = found.ref;
      const { payload: value } = body;
      checkEncodable(access, found.codecs, { workflow, value, pointer: "/payload" });
      const id = signalIdOf(caller.id, context.req.header("idempotency-key"), body);
      using wait = openWait(preferredWaitMs(context));
      return await updateRun(
        found,
        { ...body, id },
        {
          wait,
          onSent: () => audit({ action: "run.update", ...found.place, filter: body.name }, body.by),
        },
      );
    },
  });
}

function raiseRoute(access: QueueAccess): Route {
  return actionRoute({
    id: "raiseRun",
    path: "/v1/runs/{id}/raise",
    summary: "Raise the limits of the records of a run; a blocked run continues",
    body: raiseRunSchema,
    answer: runSchema,
    problems: ["not_found", "run_ended"],
    async handle({ params: { id }, body: { steps, bytes, by, reason }, caller, audit }) {
      const found = await findRun(access, caller, id);
      const { workflows, ref } = found;
      await workflows.raise(ref, defined({ steps, bytes }));
      const limits = Object.entries(defined({ steps, bytes }));
      const filter = limits.map(([name, limit]) => `${name}=${limit}`).join(", ");
      audit({ action: "run.raise", ...found.place, filter, reason }, by);
      return await readRun(found);
    },
  });
}

function controlRoute(access: QueueAccess, { name, summary, answer }: Control): Route {
  return actionRoute({
    id: `${name}Run`,
    path: `/v1/runs/{id}/${name}`,
    summary,
    body: operatorActionSchema,
    answer,
    problems: ["not_found", "run_ended"],
    async handle({ params: { id }, body, caller, audit }) {
      const found = await findRun(access, caller, id);
      const { workflows, ref } = found;
      const effect = await workflows[name](ref, body);
      audit({ action: `run.${name}`, ...found.place, reason: body.reason }, body.by);
      return { ...(await readRun(found)), ...effect };
    },
  });
}
