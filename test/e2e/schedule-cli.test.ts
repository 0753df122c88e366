import { defineSchedule, defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { openAnnounced } from "../integration/queue/announce.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { runCommand } from "./cli-runner.ts";
import { until } from "../support/until.ts";

const harness = useQueues();
const report = defineWorkflow("report", { version: 1 }, async (_w, day: string) => day);
const monthly = defineSchedule("monthly", { cron: "0 3 1 * *", workflow: report, input: "all" });

test("schedules are listed, paused, triggered and backfilled from the command line", async () => {
  const { url, prefix } = harness;
  const runs = await openAnnounced(harness, [report]);
  runs.schedule([monthly]);
  await until("the schedule is known", async () => (await runs.schedules.list()).length > 0);
  const env = { KONVERGE_REDIS_URL: url, KONVERGE_PREFIX: prefix };
  const konverge = async (...args: readonly string[]) => {
    const { stdout, stderr, code } = await runCommand(["schedule", ...args], env);
    expect(stderr + stdout, args.join(" ")).not.toContain("konverge:");
    expect(code, args.join(" ")).toBe(0);
    return stdout;
  };
  const why = ["--reason", "test", "--by", "ann"] as const;
  const paused = await konverge("pause", "monthly", ...why);
  expect(paused).toMatch(/^next +paused by ann .*: test$/m);
  expect(await konverge("list")).toMatch(/^monthly +report +cron 0 3 1 \* \* UTC +paused by ann/m);
  const id = (await konverge("trigger", "monthly", ...why, "-o", "name")).trim();
  expect(await runs.get({ workflow: "report", id: id.split("/")[2] ?? "" })).toMatchObject({
    by: "ann",
    input: "all",
  });
  const range = ["--from", "2026-02-01T00:00:00Z", "--to", "2026-04-01T00:00:00Z"] as const;
  const filled = await konverge("backfill", "monthly", ...range, ...why, "--dry-run");
  expect(filled.trim().split("\n").slice(1)).toEqual([
    expect.stringMatching(
      /^2026-02-01T03:00:00.000Z +report\/default\/monthly.2026-02-01T03:00:00Z +no$/,
    ),
    expect.stringMatching(
      /^2026-03-01T03:00:00.000Z +report\/default\/monthly.2026-03-01T03:00:00Z +no$/,
    ),
  ]);
});
