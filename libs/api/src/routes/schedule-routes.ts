import {
  backfillResponseSchema,
  backfillScheduleSchema,
  operatorActionSchema,
  scheduleListSchema,
  scheduleQuerySchema,
  scheduleSchema,
  startRunResponseSchema,
  triggerScheduleSchema,
  type ScheduleDetail,
} from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import { formatRunId, type Schedules } from "@konverge/workflow";
import { covers, demand, demandSome, type Caller } from "../access/caller.ts";
import { actionRoute, readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { placeIn } from "../runs/find-run.ts";
import { scheduleDetail, scheduleItem } from "../runs/schedule-view.ts";
import { startOnce } from "../runs/start-once.ts";

interface FoundSchedule {
  readonly schedules: Schedules;
  /** Of its workflow, in scopes and the audit log. */
  readonly place: ReturnType<typeof placeIn>;
  /** Reads its present state. */
  readonly read: () => Promise<ScheduleDetail>;
}

/** Finds a schedule. @throws KonvergeError `not_found` or `forbidden` */
async function findSchedule(
  access: QueueAccess,
  caller: Caller,
  { cluster, name }: { readonly cluster: string; readonly name: string },
): Promise<FoundSchedule> {
  demandSome(caller, { cluster });
  const { schedules } = (await access.runs(cluster)).workflows;
  const known = await schedules.list();
  const found = known.find((each) => each.name === name);
  if (found === undefined) {
    const visible = known.filter(({ workflow }) =>
      covers(caller.scope, placeIn(cluster, workflow)),
    );
    const names = visible.map((each) => each.name).join(", ") || "none";
    const detail = `cluster "${cluster}" has no schedule "${name}"; known: ${names}`;
    throw new KonvergeError("not_found", detail);
  }
  const place = placeIn(cluster, found.workflow);
  demand(caller, place);
  return {
    schedules,
    place,
    read: async () => scheduleDetail(await schedules.get(name), cluster),
  };
}

/** Schedules and the actions on them. */
export function scheduleRoutes(access: QueueAccess): Route[] {
  return [
    listRoute(access),
    getRoute(access),
    ...pauseRoutes(access),
    triggerRoute(access),
    backfillRoute(access),
  ];
}

function listRoute(access: QueueAccess): Route {
  return readRoute({
    id: "listSchedules",
    path: "/v1/schedules",
    summary: "List schedules with their next time and last run",
    query: scheduleQuerySchema,
    answer: scheduleListSchema,
    problems: ["not_found"],
    async handle({ query: { cluster }, caller }) {
      demandSome(caller, { cluster });
      const { workflows } = await access.runs(cluster);
      const schedules = await workflows.schedules.list();
      const visible = schedules.filter(({ workflow }) =>
        covers(caller.scope, placeIn(cluster, workflow)),
      );
      return { items: visible.map((schedule) => scheduleItem(schedule, cluster)) };
    },
  });
}

function getRoute(access: QueueAccess): Route {
  return readRoute({
    id: "getSchedule",
    path: "/v1/schedules/{cluster}/{name}",
    summary: "Get a schedule with its next times",
    answer: scheduleSchema,
    problems: ["not_found"],
    handle: async ({ params, caller }) => await (await findSchedule(access, caller, params)).read(),
  });
}

function pauseRoutes(access: QueueAccess): Route[] {
  return (["pause", "resume"] as const).map((kind) =>
    actionRoute({
      id: `${kind}Schedule`,
      path: `/v1/schedules/{cluster}/{name}/${kind}`,
      summary:
        kind === "pause"
          ? "Pause a schedule; its times are skipped until it is resumed"
          : "Resume a schedule with its next time",
      body: operatorActionSchema,
      answer: scheduleSchema,
      problems: ["not_found"],
      async handle({ params, body, caller, audit }) {
        const { schedules, place, read } = await findSchedule(access, caller, params);
        await schedules[kind](params.name, body);
        audit(
          { action: `schedule.${kind}`, ...place, name: params.name, reason: body.reason },
          body.by,
        );
        return await read();
      },
    }),
  );
}

function triggerRoute(access: QueueAccess): Route {
  return actionRoute({
    id: "triggerSchedule",
    path: "/v1/schedules/{cluster}/{name}/trigger",
    summary: "Start a run of a schedule now, also while it is paused",
    body: triggerScheduleSchema,
    answer: startRunResponseSchema,
    status: 202,
    problems: ["not_found", "queue_full"],
    async handle({ params, body, caller, context, headers, audit }) {
      const { cluster, name } = params;
      const { schedules, place } = await findSchedule(access, caller, params);
      const { by, reason, overlap } = body;
      let workflow = "";
      const start = async (id?: string) => {
        const started = await schedules.trigger(name, { by, ...defined({ id, overlap }) });
        workflow = started.workflow;
        return started;
      };
      const once = context.req.header("idempotency-key");
      const started =
        once === undefined
          ? await start()
          : await startOnce([caller.id, once, params, body], start);
      audit({ action: "schedule.trigger", ...place, name, filter: started.id, reason }, by);
      const id = formatRunId({ workflow, id: started.id }, cluster);
      headers["location"] = `/v1/runs/${encodeURIComponent(id)}`;
      return { id, created: started.created };
    },
  });
}

function backfillRoute(access: QueueAccess): Route {
  return actionRoute({
    id: "backfillSchedule",
    path: "/v1/schedules/{cluster}/{name}/backfill",
    summary: "Start the runs of past times of a schedule that have none",
    body: backfillScheduleSchema,
    answer: backfillResponseSchema,
    problems: ["not_found", "queue_full"],
    async handle({ params: { cluster, name }, body, caller, audit }) {
      const { schedules, place } = await findSchedule(access, caller, { cluster, name });
      const { from, to, by, reason, overlap, dryRun } = body;
      const range = { fromMs: Date.parse(from), toMs: Date.parse(to) };
      const { workflow, times } = await schedules.backfill(name, { ...range, by, overlap, dryRun });
      if (!dryRun) {
        const filter = `${from} to ${to}`;
        const count = times.filter(({ created }) => created).length;
        audit({ action: "schedule.backfill", ...place, name, filter, reason, count }, by);
      }
      return {
        items: times.map(({ atMs, run, created }) => ({
          at: new Date(atMs).toISOString(),
          run: formatRunId({ workflow, id: run }, cluster),
          created,
        })),
      };
    },
  });
}
