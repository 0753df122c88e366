import { defineConfig } from "@konverge/worker";
import {
  defineSchedule,
  defineWorkflow,
  type Schedule,
  type ScheduleOptions,
} from "@konverge/workflow";
import { describe, expect, test } from "vitest";
import {
  createScheduleBook,
  type ScheduleBook,
} from "../../../libs/workflow/src/schedules/schedule-book.ts";
import { startDue } from "../../../libs/workflow/src/schedules/start-scheduler.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useWorkers } from "../worker/worker-harness.ts";
import { useWorkflows } from "./workflow-harness.ts";
import { until } from "../../support/until.ts";

const at = (text: string) => Date.parse(`2026-11-21T${text}Z`);
const report = defineWorkflow("report", { version: 1 }, async (_w, day: string) => day);
const hourly = (options: Partial<ScheduleOptions<string>> = {}): Schedule =>
  defineSchedule("hourly", { cron: "0 * * * *", workflow: report, input: "today", ...options });

describe("due times", () => {
  const harness = useQueues();
  const openBook = () =>
    createScheduleBook((run) => run(harness.redis), { prefix: harness.prefix, cluster: "c" });
  const started: string[] = [];
  const errors: string[] = [];
  /** Runs one round of a process at a given time. */
  const round = async (
    nowMs: number,
    schedules: readonly Schedule[],
    { book = openBook(), start = async (id: string) => id } = {},
  ) => {
    started.length = 0;
    errors.length = 0;
    const nextMs = await startDue({
      schedules,
      book,
      nowMs,
      start: async (_schedule, id) => {
        started.push(id);
        return await start(id);
      },
      onError: ({ message }) => errors.push(message),
    });
    return [...started, `next ${new Date(nextMs).toISOString().slice(11, 19)}`];
  };

  test("starts one run per time across processes, and none for times before the first check", async () => {
    const all = [hourly()];
    expect(await round(at("02:10:00"), all)).toEqual(["next 03:00:00"]);
    expect(await round(at("02:59:59"), all)).toEqual(["next 03:00:00"]);
    expect(await round(at("03:00:00"), all)).toEqual([
      "hourly.2026-11-21T03:00:00Z",
      "next 04:00:00",
    ]);
    expect(await round(at("03:00:00"), all)).toEqual(["next 04:00:00"]);
    expect(await round(at("03:59:00"), all)).toEqual(["next 04:00:00"]);
  });

  test("starts only the last missed time after an outage", async () => {
    await round(at("02:10:00"), [hourly()]);
    expect(await round(at("09:30:00"), [hourly()])).toEqual([
      "hourly.2026-11-21T09:00:00Z",
      "next 10:00:00",
    ]);
  });

  test("repeats a failed or unmarked start with the same id, without delaying other schedules", async () => {
    const daily = defineSchedule("daily", { cron: "0 3 * * *", workflow: report, input: "x" });
    const all = [hourly(), daily];
    await round(at("02:10:00"), all);
    const fail = async (id: string) => {
      if (id.startsWith("hourly")) throw new Error("away");
      return id;
    };
    const ids = ["hourly.2026-11-21T03:00:00Z", "daily.2026-11-21T03:00:00Z"];
    expect(await round(at("03:00:00"), all, { start: fail })).toEqual([...ids, "next 04:00:00"]);
    expect(errors).toEqual(["away"]);
    const dying: ScheduleBook = {
      ...openBook(),
      pass: async () => Promise.reject(new Error("dead")),
    };
    await round(at("03:00:10"), all, { book: dying });
    expect([started, errors]).toEqual([[ids[0]], ["dead"]]);
    expect(await round(at("03:00:20"), all)).toEqual([ids[0], "next 04:00:00"]);
    expect(await round(at("03:00:30"), all)).toEqual(["next 04:00:00"]);
  });

  test("a changed schedule starts from its change, also while another process checks the old one", async () => {
    const old = hourly({ cron: "0 3 * * *" });
    await round(at("01:00:00"), [old]);
    await round(at("03:00:00"), [old]);
    // The old times have none open; of the new ones, 09:00 was before the change.
    expect(await round(at("09:30:00"), [hourly()])).toEqual(["next 10:00:00"]);
    expect(await round(at("09:40:00"), [old])).toEqual(["next 03:00:00"]);
    expect((await round(at("10:00:00"), [hourly()]))[0]).toBe("hourly.2026-11-21T10:00:00Z");
  });

  test("lists schedules with their next time and last run, and removes those unchecked for a week", async () => {
    const book = openBook();
    const nowMs = await book.now();
    const other = defineSchedule("other", { every: "1h", workflow: report, input: "x" });
    await book.look(hourly(), nowMs);
    await book.pass(hourly(), nowMs + 1, "hourly.x");
    await book.pass(hourly(), nowMs, "hourly.earlier");
    await book.look(other, nowMs - 200_000);
    const gone = defineSchedule("gone", { every: "1h", workflow: report, input: "x" });
    await book.look(gone, nowMs - 8 * 86_400_000);
    await book.prune(nowMs);
    expect(await book.list()).toMatchObject([
      {
        name: "hourly",
        workflow: "report",
        times: "cron 0 * * * * UTC",
        isLive: true,
        run: "hourly.x",
      },
      { name: "other", times: "every 3600000 ms", isLive: false, seenMs: nowMs - 200_000 },
    ]);
  });
});

describe("with the real clock", () => {
  const harness = useWorkflows();

  test("several processes start one run per time, with the schedule as author and one active run at a time", async () => {
    const gated = defineWorkflow("gated", { version: 1 }, async (w) => await w.signal("go"));
    const second = defineSchedule("second", { every: "1s", workflow: gated, input: undefined });
    const openAll = [harness.openRuns(), harness.openRuns(), harness.openRuns()];
    openAll[0]?.work({ workflows: [gated], workerId: "test" });
    for (const runs of openAll) runs.schedule([second]);
    const runs = openAll[0] as (typeof openAll)[number];
    const first = await until("the first run waits", async () => {
      const [run] = (await runs.list("gated")).runs;
      return run?.status === "waiting" && run;
    });
    expect(first).toMatchObject({ key: "schedule/second", by: "schedule second" });
    expect(first.id).toMatch(/^second\.\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    // A later time is skipped while this run is active.
    await until("a later time has passed", async () => {
      const [schedule] = await runs.schedules();
      return schedule !== undefined && schedule.nextMs > Date.parse(first.id.slice(7)) + 2_000;
    });
    expect((await runs.list("gated")).runs).toHaveLength(1);
    await runs.signal({ workflow: "gated", id: first.id }, "go");
    await until("another run starts", async () => (await runs.list("gated")).runs.length > 1);
    expect(harness.errors).toEqual([]);
  });
});

describe("in a worker", () => {
  const workers = useWorkers("schedules.test.konverge.dev");

  test("starts the schedules of its configuration, but not with role work", async () => {
    const { prefix } = workers.queues;
    const schedules = [defineSchedule("second", { every: "1s", workflow: report, input: "now" })];
    const config = defineConfig({ workflows: [report], schedules, settings: { prefix } });
    await workers.start([], { config, role: "work" });
    const book = createScheduleBook((run) => run(workers.queues.redis), {
      prefix,
      cluster: "default",
    });
    await workers.start([], { config, role: "watch" });
    const schedule = await until("a run is done", async () => {
      const [known] = await book.list();
      return known?.run !== undefined && known;
    });
    expect(schedule).toMatchObject({ name: "second", isLive: true });
  });
});
