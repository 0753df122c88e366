import { defineConfig } from "@konverge/worker";
import {
  defineSchedule,
  defineWorkflow,
  type BackfillOptions,
  type Schedule,
  type ScheduleOptions,
  type TriggerOptions,
} from "@konverge/workflow";
import { defined } from "@konverge/core";
import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import {
  createScheduleBook,
  type ScheduleBook,
} from "../../../libs/workflow/src/schedules/schedule-book.ts";
import { startDue } from "../../../libs/workflow/src/schedules/start-scheduler.ts";
import { createMemoryScheduleBook } from "../../../libs/workflow/src/testing/memory-schedule-book.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { useWorkers } from "../worker/worker-harness.ts";
import { useWorkflows } from "./workflow-harness.ts";
import { until } from "../../support/until.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const at = (text: string) => Date.parse(`2026-11-21T${text}Z`);
const report = defineWorkflow("report", { version: 1 }, async (_w, day: string) => day);
const hourly = (options: Partial<ScheduleOptions<string>> = {}): Schedule =>
  defineSchedule("hourly", { cron: "0 * * * *", workflow: report, input: "today", ...options });

const numRuns = isLongRun ? 300 : 30;
const fuzzed = useQueues();

const dueTimes = useQueues();
let memoryBook: ScheduleBook;
beforeEach(() => {
  memoryBook = createMemoryScheduleBook(() => Date.now());
});

describe.each([
  {
    name: "Redis",
    openBook: () =>
      createScheduleBook((run) => run(dueTimes.redis), { prefix: dueTimes.prefix, cluster: "c" }),
  },
  { name: "memory", openBook: () => memoryBook },
])("due times in $name", ({ openBook }) => {
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
    const next = Number.isFinite(nextMs) ? new Date(nextMs).toISOString().slice(11, 19) : "never";
    return [...started, `next ${next}`];
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
    expect(await round(at("03:00:00"), all, { start: fail })).toEqual([...ids, "next 03:00:05"]);
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

  test("a paused schedule starts nothing, and skips the times of its pause", async () => {
    const book = openBook();
    const all = [hourly({ catchUp: "1d" })];
    await round(at("02:10:00"), all);
    await book.pause("hourly", { by: "ann", atMs: at("02:30:00") });
    expect(await round(at("03:00:00"), all)).toEqual(["next never"]);
    await book.resume("hourly", at("05:30:00"));
    expect(await round(at("05:40:00"), all)).toEqual(["next 06:00:00"]);
    expect((await round(at("06:00:00"), all))[0]).toBe("hourly.2026-11-21T06:00:00Z");
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

test(`with a catch-up, each time outside of a pause has one run, whatever processes die (KONVERGE_TEST_SEED=${seed})`, async () => {
  const { redis, prefix } = fuzzed;
  let cluster = 0;
  const opArbitrary = fc.oneof(
    { weight: 6, arbitrary: fc.record({ op: fc.constant("pass"), minutes: fc.nat(180) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant("crash"), minutes: fc.nat(180) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("pause"), minutes: fc.nat(180) }) },
  );
  const property = fc.asyncProperty(
    fc.array(opArbitrary, { minLength: 5, maxLength: 25 }),
    fc.constantFrom(undefined, "10m" as const),
    async (ops, jitter) => {
      const book = createScheduleBook((run) => run(redis), { prefix, cluster: `c${cluster++}` });
      const schedule = hourly({ cron: "*/20 * * * *", catchUp: "365d", ...defined({ jitter }) });
      const runs = new Set<string>();
      let nowMs = at("00:10:00");
      let crashes = false;
      const dying: ScheduleBook = {
        ...book,
        pass: async (...given) => {
          if (crashes) throw new Error("dead");
          await book.pass(...given);
        },
      };
      const round = async () => {
        const start = async (_schedule: Schedule, id: string) => String(runs.add(id) && id);
        const onError = () => undefined;
        // A round starts at most 100 times.
        while (
          (await startDue({ schedules: [schedule], book: dying, nowMs, start, onError })) <= nowMs
        );
      };
      await round();
      const expected: string[] = [];
      const expectUntil = (fromMs: number, toMs: number) => {
        const { times } = schedule;
        for (let ms = times.next(fromMs); ms <= toMs; ms = times.next(ms)) {
          expected.push(`hourly.${new Date(ms).toISOString().replace(".000Z", "Z")}`);
        }
      };
      let countedMs = nowMs;
      for (const { op, minutes } of [...ops, { op: "pass", minutes: 60 }]) {
        nowMs += minutes * 60_000;
        crashes = op === "crash";
        await round();
        if (op !== "pause") continue;
        // All times that a jitter has not delayed are started; the pause skips those, and the next ones.
        const jitterMs = jitter === undefined ? 0 : 600_000;
        const startedMs = schedule.times.last(nowMs - jitterMs);
        expectUntil(countedMs, startedMs);
        const delayed = [...runs].filter((id) => Date.parse(id.slice(7)) > startedMs);
        expected.push(...delayed);
        await book.pause("hourly", { atMs: nowMs });
        nowMs += minutes * 60_000;
        await round();
        nowMs += 60_000;
        await book.resume("hourly", nowMs);
        countedMs = nowMs;
      }
      const endMs = nowMs;
      nowMs += 600_000;
      await round();
      expectUntil(countedMs, endMs);
      const missing = expected.filter((id) => !runs.has(id));
      const extra = [...runs].filter((id) => !expected.includes(id));
      expect(missing).toEqual([]);
      // Times after the end, which the last round may have started.
      expect(extra.filter((id) => Date.parse(id.slice(7)) <= endMs)).toEqual([]);
    },
  );
  await fc.assert(property, { seed, numRuns });
});

describe("with the real clock", () => {
  const harness = useWorkflows();

  /** Runs that wait for the signal `go`, beside a schedule that is due in a year. */
  const openGated = async (options: Partial<ScheduleOptions<string>> = {}) => {
    const runs = harness.openRuns();
    const gated = defineWorkflow("gated", { version: 1 }, async (w, _input: string) => {
      await w.signal("go");
      return w.scheduledAtMs;
    });
    runs.work({ workflows: [gated], workerId: "test" });
    const schedule = defineSchedule("rare", {
      cron: "0 0 1 1 *",
      workflow: gated,
      input: "a",
      ...options,
    });
    runs.schedule([schedule]);
    await until("the schedule is known", async () => (await runs.schedules.list()).length > 0);
    const statusOf = async (id: string) => (await runs.get({ workflow: "gated", id }))?.status;
    const finish = async (id: string) => {
      await runs.signal({ workflow: "gated", id }, "go");
      return await until(`${id} is done`, async () => {
        const run = await runs.get({ workflow: "gated", id });
        return run?.status === "done" && run;
      });
    };
    return { runs, statusOf, finish };
  };

  test("a trigger starts a run by the overlap of the schedule or of the call, with its time", async () => {
    const { runs, statusOf, finish } = await openGated({ overlap: "buffer-one" });
    const trigger = async (options: TriggerOptions = {}) =>
      await runs.schedules.trigger("rare", options);
    const first = await trigger({ by: "ann" });
    const buffered = await trigger();
    expect([first.created, buffered.created]).toEqual([true, true]);
    await expect(trigger()).rejects.toMatchObject({ code: "queue_full" });
    expect(await trigger({ overlap: "skip" })).toMatchObject({ id: buffered.id, created: false });
    const beside = await trigger({ overlap: "allow-all" });
    const { scheduledAtMs, by, result } = await finish(first.id);
    expect([by, result]).toEqual(["ann", scheduledAtMs]);
    await finish(buffered.id);
    const last = await trigger({ overlap: "cancel-other" });
    const replacing = await trigger({ overlap: "terminate-other" });
    expect(await runs.get({ workflow: "gated", id: last.id })).toMatchObject({
      status: "cancelled",
      terminated: { reason: `replaced by ${replacing.id}` },
    });
    await finish(replacing.id);
    expect(await statusOf(beside.id)).toBe("waiting");
  });

  test("a backfill starts each past time once, one run after another", async () => {
    const { runs, finish } = await openGated({ cron: "0 * * * *" });
    const range = { fromMs: at("01:00:00"), toMs: at("03:30:00") };
    const ids = ["01", "02", "03"].map((hour) => `rare.2026-11-21T${hour}:00:00Z`);
    const backfill = async (options: Partial<BackfillOptions> = {}) => {
      const { times } = await runs.schedules.backfill("rare", { ...range, ...options });
      return times.map(({ run, created }) => `${run} ${created}`);
    };
    expect(await backfill({ dryRun: true })).toEqual(ids.map((id) => `${id} false`));
    expect(await backfill({ toMs: at("01:00:00") })).toEqual([`${ids[0]} true`]);
    expect(await backfill()).toEqual([`${ids[0]} false`, `${ids[1]} true`, `${ids[2]} true`]);
    const results: unknown[] = [];
    for (const id of ids) results.push((await finish(id)).result);
    expect(results).toEqual([at("01:00:00"), at("02:00:00"), at("03:00:00")]);
    await expect(backfill({ toMs: Date.now() + 86_400_000 })).rejects.toThrow("in the past");
    await expect(backfill({ fromMs: at("01:00:00") - 86_400_000 * 60 })).rejects.toThrow(
      "more than 1000 times",
    );
    await expect(runs.schedules.trigger("other")).rejects.toThrow("known: rare");
  });

  test("a paused schedule shows its pause and no next times, and skips what passes until it is resumed", async () => {
    const { runs } = await openGated();
    expect((await runs.schedules.get("rare")).nextTimesMs).toHaveLength(5);
    await runs.schedules.pause("rare", { by: "ann", reason: "maintenance" });
    expect(await runs.schedules.get("rare")).toMatchObject({
      paused: { by: "ann", reason: "maintenance" },
      nextTimesMs: [],
    });
    await runs.schedules.resume("rare");
    expect((await runs.schedules.get("rare")).paused).toBeUndefined();
    expect((await runs.schedules.trigger("rare")).created).toBe(true);
  });

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
      const [schedule] = await runs.schedules.list();
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
