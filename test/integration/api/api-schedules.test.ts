import {
  auditPageSchema,
  backfillResponseSchema,
  scheduleListSchema,
  scheduleSchema,
  startRunResponseSchema,
} from "@konverge/contracts";
import { defineSchedule, defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { openAnnounced } from "../queue/announce.ts";
import { problemIn, useApi } from "./api-harness.ts";
import { until } from "../../support/until.ts";

const harness = useApi();
const backup = defineWorkflow("backup", { version: 1 }, async (w, _input: { to: string }) => {
  await w.signal("go");
});
const nightly = defineSchedule("nightly", {
  cron: "0 3 * * *",
  timeZone: "Europe/Berlin",
  workflow: backup,
  input: { to: "s3" },
  jitter: "10m",
});
const by = "ann";

/** Announces the workflow and its schedule, as a worker process does. */
async function announce(): Promise<void> {
  const runs = await openAnnounced(harness.queues, [backup]);
  runs.schedule([nightly]);
  await until("the schedule is known", async () => (await runs.schedules.list()).length > 0);
}

test("lists and shows a schedule, pauses, resumes, triggers and backfills it", async () => {
  const call = harness.serve();
  await announce();
  const path = "/v1/schedules/default/nightly";
  const post = async (action: string, body: object, headers: Record<string, string> = {}) =>
    await call(`${path}/${action}`, { body: { by, reason: "test", ...body }, headers });

  const { items } = scheduleListSchema.parse(await (await call("/v1/schedules")).json());
  expect(items).toMatchObject([{ name: "nightly", workflow: "backup", overlap: "skip" }]);
  const shown = scheduleSchema.parse(await (await call(path)).json());
  expect(shown).toMatchObject({ input: { to: "s3" }, jitterMs: 600_000 });
  expect(shown.nextTimes).toHaveLength(5);

  const paused = scheduleSchema.parse(await (await post("pause", {})).json());
  expect(paused).toMatchObject({ paused: { by, reason: "test" }, nextTimes: [] });
  expect(paused.nextAt).toBeUndefined();

  const key = { "idempotency-key": "t1" };
  const triggered = startRunResponseSchema.parse(await (await post("trigger", {}, key)).json());
  expect(triggered.created).toBe(true);
  const again = startRunResponseSchema.parse(await (await post("trigger", {}, key)).json());
  expect(again.id).toBe(triggered.id);
  const run = await call(`/v1/runs/${encodeURIComponent(triggered.id)}`);
  expect(await run.json()).toMatchObject({
    by,
    key: "schedule/nightly",
    input: { to: "s3" },
    scheduledAt: expect.any(String) as string,
  });

  const range = { from: "2026-03-28T00:00:00Z", to: "2026-03-30T00:00:00+01:00" };
  const filled = backfillResponseSchema.parse(await (await post("backfill", range)).json());
  expect(filled.items).toEqual([
    {
      at: "2026-03-28T02:00:00.000Z",
      run: "backup/default/nightly.2026-03-28T02:00:00Z",
      created: true,
    },
    {
      at: "2026-03-29T01:00:00.000Z",
      run: "backup/default/nightly.2026-03-29T01:00:00Z",
      created: true,
    },
  ]);

  const resumed = scheduleSchema.parse(await (await post("resume", {})).json());
  expect(resumed.paused).toBeUndefined();
  const audit = auditPageSchema.parse(await (await call("/v1/audit")).json());
  const actions = audit.items.map(({ action }) => action).toReversed();
  expect(actions.filter((action) => action.startsWith("schedule."))).toEqual([
    "schedule.pause",
    "schedule.trigger",
    "schedule.backfill",
    "schedule.resume",
  ]);
});

test("rejects an unknown schedule and an invalid range, and needs the scope of the workflow", async () => {
  const call = harness.serve();
  await announce();
  const post = async (name: string, body: object) =>
    await call(`/v1/schedules/default/${name}/backfill`, { body: { by, reason: "test", ...body } });
  const range = { from: "2026-03-28T00:00:00Z", to: "2026-03-30T00:00:00Z" };
  expect(await problemIn(await post("other", range))).toMatchObject({
    code: "not_found",
    detail: expect.stringContaining("known: nightly") as string,
  });
  for (const body of [
    { ...range, to: "yesterday" },
    { ...range, to: "2999-01-01T00:00:00Z" },
  ]) {
    expect((await post("nightly", body)).status).toBe(422);
  }
  const viewer = { token: await harness.token("viewer", { role: "viewer" }) };
  const scope = { controllers: ["node-pool"] };
  const stranger = { token: await harness.token("stranger", { role: "operator", scope }) };
  const body = { by, reason: "test" };
  for (const sent of [viewer, stranger]) {
    const response = await call("/v1/schedules/default/nightly/trigger", { ...sent, body });
    expect(response.status).toBe(403);
  }
  expect(await (await call("/v1/schedules", stranger)).json()).toEqual({ items: [] });
});
