import type { BackfillResponse, ScheduleDetail, ScheduleList } from "@konverge/contracts";
import { age, wholeSpan } from "./age.ts";
import { columns, fields, type Cell } from "./columns.ts";

const NONE = "-";

/** Formats schedules, a line each, by name. */
export function scheduleRows(schedules: ScheduleList["items"]): string {
  return columns([
    ["SCHEDULE", "WORKFLOW", "SCHEDULED", "NEXT", "LAST RUN"],
    ...schedules.map((schedule): Cell[] => [
      schedule.name,
      schedule.workflow,
      timesOf(schedule),
      nextOf(schedule),
      schedule.run ?? NONE,
    ]),
  ]);
}

/** Formats one schedule with its next times. */
export function scheduleDetails(schedule: ScheduleDetail): string {
  const { name, workflow, overlap, catchUpMs, jitterMs, input, nextTimes, run } = schedule;
  const rows: [string, string][] = [
    ["schedule", name],
    ["workflow", workflow],
    ["scheduled", timesOf(schedule)],
    ["next", nextOf(schedule)],
    ...nextTimes.slice(1).map((at): [string, string] => ["", at]),
    ["overlap", overlap],
    ["catch-up", catchUpMs === undefined ? "last missed time" : `${catchUpMs / 1_000} s`],
  ];
  if (jitterMs !== undefined) rows.push(["jitter", `${jitterMs / 1_000} s`]);
  if (input !== undefined) rows.push(["input", JSON.stringify(input)]);
  rows.push(["last run", run ?? NONE]);
  return fields(rows);
}

/** Formats the times of a backfill, a line each, oldest first. */
export function backfillRows(items: BackfillResponse["items"]): string {
  return columns([
    ["TIME", "RUN", "STARTED"],
    ...items.map(({ at, run, created }): Cell[] => [at, run, created ? "yes" : "no"]),
  ]);
}

function timesOf({ schedule }: { readonly schedule: string }): string {
  return schedule.replace(/^every (\d+) ms$/, (_, ms: string) => `every ${wholeSpan(Number(ms))}`);
}

function nextOf({ active, paused, nextAt, seenAt }: ScheduleList["items"][number]): string {
  if (paused !== undefined) {
    const { by = "unknown", since, reason = "no reason given" } = paused;
    return `paused by ${by} ${age(since)} ago: ${reason}`;
  }
  if (!active || nextAt === undefined) return `no worker for ${age(seenAt)}`;
  return `${nextAt} (${age(nextAt)})`;
}
