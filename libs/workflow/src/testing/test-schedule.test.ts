import { defined } from "@konverge/core";
import { describe, expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { defineSchedule, type ScheduleOptions } from "../schedules/define-schedule.ts";
import { testWorkflow } from "./test-workflow.ts";

const at = (text: string) => Date.parse(`2026-11-21T${text}Z`);
const hours = (runs: readonly { readonly scheduledAtMs?: number }[]) =>
  runs.map(({ scheduledAtMs = NaN }) => new Date(scheduledAtMs).getUTCHours());

const idle = defineWorkflow("idle", { version: 1 }, async () => undefined);
/** Waits for a signal, and undoes a step when it is cancelled. */
const backup = defineWorkflow("backup", { version: 1 }, async (w, target: string) => {
  await w.step("copy", () => target, { undo: () => undefined });
  await w.signal("finish");
  return { target, scheduledAtMs: w.scheduledAtMs };
});

function open(options: Partial<ScheduleOptions<string>> = {}, startMs = at("00:30:00")) {
  const t = testWorkflow(idle, undefined, { startMs });
  const schedule = defineSchedule("hourly", {
    cron: "0 * * * *",
    workflow: backup,
    input: "s3",
    ...options,
  });
  return { t, hourly: t.schedule(schedule) };
}

describe("a schedule of a test", () => {
  test("starts a run at each of its times, with the time and the schedule as author", async () => {
    const { t, hourly } = open();
    await t.advance("29m");
    expect(await hourly.runs()).toEqual([]);
    await t.advance("1m");
    const run = await hourly.run().signal("finish");
    expect(run).toMatchObject({
      id: "hourly.2026-11-21T01:00:00Z",
      status: "done",
      by: "schedule hourly",
      scheduledAtMs: at("01:00:00"),
      result: { target: "s3", scheduledAtMs: at("01:00:00") },
    });
    await t.advance("1h");
    expect(hours(await hourly.runs())).toEqual([1, 2]);
    expect((await hourly.get()).nextTimesMs[0]).toBe(at("03:00:00"));
  });

  test("skips the times of a pause, and is triggered during it", async () => {
    const { t, hourly } = open({ catchUp: "1d" });
    await hourly.pause();
    await t.advance("2h");
    expect(await hourly.runs()).toEqual([]);
    const run = await hourly.trigger();
    expect(run).toMatchObject({ status: "waiting", scheduledAtMs: at("02:30:00") });
    await hourly.run().signal("finish");
    await hourly.resume();
    await t.advance("1h");
    expect((await hourly.runs()).map(({ status }) => status)).toEqual(["done", "waiting"]);
  });

  test.each([
    { catchUp: undefined, caughtUp: [4] },
    { catchUp: "2h" as const, caughtUp: [3, 4] },
  ])("after an outage with catchUp $catchUp, starts $caughtUp", async ({ catchUp, caughtUp }) => {
    const { t, hourly } = open({
      overlap: "allow-all",
      ...defined({ catchUp }),
    });
    await t.outage("4h");
    expect(hours(await hourly.runs())).toEqual(caughtUp);
  });

  test("backfills the past times that have no run", async () => {
    const { t, hourly } = open();
    await t.advance("1h");
    await hourly.run().signal("finish");
    await t.advance("20m");
    await hourly.backfill({ fromMs: at("00:00:00"), toMs: at("01:00:00") });
    expect(hours(await hourly.runs())).toEqual([1, 0]);
  });

  test("stores its input with the codec of the test", async () => {
    const bytes: string[] = [];
    const codec = {
      name: "reverse",
      encode: (value: Uint8Array) => {
        bytes.push(new TextDecoder().decode(value));
        return value.toReversed();
      },
      decode: (value: Uint8Array) => value.toReversed(),
    };
    const t = testWorkflow(idle, undefined, { codec });
    const all = t.schedule(
      defineSchedule("all", { every: "1h", workflow: backup, input: "secret" }),
    );
    await t.advance("1h");
    expect(bytes).toContain('"secret"');
    expect(await all.run().signal("finish")).toMatchObject({ result: { target: "secret" } });
  });

  test("rejects a second schedule with its name, and a run that it has not started", async () => {
    const { t, hourly } = open();
    const other = defineSchedule("hourly", { every: "1h", workflow: idle, input: undefined });
    expect(() => t.schedule(other)).toThrow('schedule "hourly" was passed twice');
    await expect(hourly.run().run()).rejects.toThrow('schedule "hourly" has started 0 runs');
  });

  test("an outage is rejected while a body is held", async () => {
    const t = testWorkflow(backup, "s3");
    t.holdStep("copy");
    await expect(t.outage("1h")).rejects.toThrow("call releaseStep before outage");
    await t.releaseStep("copy");
  });
});

/** Two times pass while the first run waits; then it is finished. */
test.each([
  { overlap: "skip" as const, waiting: ["waiting"], finished: ["done"] },
  { overlap: "buffer-one" as const, waiting: ["waiting", "queued"], finished: ["done", "waiting"] },
  {
    overlap: "buffer-all" as const,
    waiting: ["waiting", "queued", "queued"],
    finished: ["done", "waiting", "queued"],
  },
  {
    overlap: "allow-all" as const,
    waiting: ["waiting", "waiting", "waiting"],
    finished: ["done", "waiting", "waiting"],
  },
])("with overlap $overlap, its runs are $waiting", async ({ overlap, waiting, finished }) => {
  const { t, hourly } = open({ overlap });
  await t.advance("150m");
  const statuses = async () => (await hourly.runs()).map(({ status }) => status);
  expect(await statuses()).toEqual(waiting);
  await hourly.run(0).signal("finish");
  expect(await statuses()).toEqual(finished);
});

test("with overlap cancel-other, the earlier runs are undone before the next one begins", async () => {
  const { t, hourly } = open({ overlap: "cancel-other" });
  await t.advance("2h");
  expect((await hourly.runs()).map(({ status }) => status)).toEqual(["cancelled", "waiting"]);
  expect([...(await hourly.run(0).steps()).keys()]).toContain("undo:copy");
});

test("with overlap terminate-other, the earlier runs end without undo, also queued ones", async () => {
  const { t, hourly } = open({ overlap: "terminate-other" });
  await t.advance("31m");
  await hourly.trigger({ overlap: "buffer-all" });
  await t.advance("1h");
  expect((await hourly.runs()).map(({ status, terminated }) => [status, terminated])).toEqual([
    ["cancelled", { by: "schedule hourly", reason: "replaced by hourly.2026-11-21T02:00:00Z" }],
    ["cancelled", { by: "schedule hourly", reason: "replaced by hourly.2026-11-21T02:00:00Z" }],
    ["waiting", undefined],
  ]);
  expect([...(await hourly.run(0).steps()).keys()]).toEqual(["copy"]);
});

test("overlap terminate-other ends a run whose body is running", async () => {
  const { t, hourly } = open({ overlap: "terminate-other" });
  t.holdStep("copy");
  await t.advance("31m");
  await t.advance("1h");
  await t.releaseStep("copy");
  expect((await hourly.runs()).map(({ status }) => status)).toEqual(["cancelled", "waiting"]);
  expect([...(await hourly.run(0).steps()).keys()]).toEqual([]);
});

test("a run that ends at a time of its schedule has ended before that time", async () => {
  const slow = defineWorkflow("slow", { version: 1 }, async (w) => w.sleep("work", "1h"));
  const t = testWorkflow(idle, undefined, { startMs: at("00:30:00") });
  const hourly = t.schedule(
    defineSchedule("hourly", { cron: "0 * * * *", workflow: slow, input: undefined }),
  );
  await t.advance("3h");
  expect(hours(await hourly.runs())).toEqual([1, 2, 3]);
});
