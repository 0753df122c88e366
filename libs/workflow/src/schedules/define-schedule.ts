import {
  defined,
  ensureError,
  invalidConfig,
  SCHEDULE_OVERLAPS,
  toMs,
  type Duration,
  type ErrorIssue,
  type ScheduleOverlap,
} from "@konverge/core";
import type { AnyWorkflow, Workflow } from "../define/define-workflow.ts";
import { assertJson } from "../define/json-value.ts";
import { findWorkflowNameIssue } from "../define/run-ref.ts";
import { schemaRefusal } from "../define/schema-refusal.ts";
import { cronTimes, everyTimes, type ScheduleTimes } from "./schedule-times.ts";

/** Longer than two rounds of a scheduler, so that a late one misses nothing. */
const MIN_CATCH_UP_MS = 60_000;

/** The options of {@link defineSchedule}. */
export interface ScheduleOptions<I> {
  /** Minute, hour, day of month, month, day of week, with seconds first if there are six fields; or a name such as `@daily`. */
  readonly cron?: string;
  /** Interval instead of `cron`, counted from 1970 in UTC, so that all workers use the same times. At least 1 s. */
  readonly every?: Duration;
  /** Time zone of `cron`, such as `Europe/Berlin`. Default UTC. A time that the clock skips is due right after the gap; of a repeated one, the first counts. */
  readonly timeZone?: string;
  /** The workflow to start. */
  readonly workflow: Workflow<I>;
  /** The input of each run. */
  readonly input: NoInfer<I>;
  /** What happens to a time at which an earlier run is still active. Default `skip`. */
  readonly overlap?: ScheduleOverlap;
  /**
   * Starts a run for each time of this duration that was missed, oldest first, such as while no worker ran. Default: one run,
   * for the last missed time, whatever its age. At least 1 min.
   */
  readonly catchUp?: Duration;
  /**
   * Delays each start by up to this duration, and never past the next time, so that schedules with the same times spread their
   * load. The delay of a time is the same in all workers. Default 0.
   */
  readonly jitter?: Duration;
}

/** Starts runs of a workflow at given times. */
export interface Schedule {
  readonly name: string;
  readonly times: ScheduleTimes;
  readonly workflow: AnyWorkflow;
  readonly input: unknown;
  readonly overlap: ScheduleOverlap;
  readonly catchUpMs?: number;
  readonly jitterMs?: number;
}

/** @throws KonvergeError `invalid_config` with all issues */
export function defineSchedule<I>(name: string, options: ScheduleOptions<I>): Schedule {
  const issues: ErrorIssue[] = [];
  const nameIssue = findWorkflowNameIssue(name);
  if (nameIssue !== undefined) issues.push({ pointer: "/name", detail: nameIssue });
  const times = readTimes(options, issues);
  const { workflow, input, overlap = "skip" } = options;
  findInputIssues(workflow, input, issues);
  if (!SCHEDULE_OVERLAPS.includes(overlap)) {
    const detail = `overlap must be one of ${SCHEDULE_OVERLAPS.join(", ")}`;
    issues.push({ pointer: "/overlap", detail });
  }
  const catchUpMs = durationOf("catchUp", options.catchUp, issues);
  if (catchUpMs !== undefined && catchUpMs < MIN_CATCH_UP_MS) {
    issues.push({ pointer: "/catchUp", detail: "catchUp must be at least 1m" });
  }
  const jitterMs = durationOf("jitter", options.jitter, issues);
  if (times === undefined || issues.length > 0)
    throw invalidConfig(issues, `schedule "${name}" is`);
  return { name, times, workflow, input, overlap, ...defined({ catchUpMs, jitterMs }) };
}

function durationOf(
  field: string,
  duration: Duration | undefined,
  issues: ErrorIssue[],
): number | undefined {
  if (duration === undefined) return undefined;
  try {
    return toMs(duration, field);
  } catch (error) {
    issues.push({ pointer: `/${field}`, detail: ensureError(error).message });
    return undefined;
  }
}

function readTimes(
  { cron, every, timeZone }: Pick<ScheduleOptions<unknown>, "cron" | "every" | "timeZone">,
  issues: ErrorIssue[],
): ScheduleTimes | undefined {
  if ((cron === undefined) === (every === undefined)) {
    issues.push({ pointer: "/cron", detail: 'set either cron, such as "0 3 * * *", or every' });
    return undefined;
  }
  if (every !== undefined && timeZone !== undefined) {
    issues.push({
      pointer: "/timeZone",
      detail: "timeZone applies to cron only; every counts in UTC",
    });
  }
  const pointer = cron === undefined ? "/every" : "/cron";
  try {
    return cron === undefined
      ? everyTimes(toMs(every ?? 0, "every"))
      : cronTimes(cron, timeZone ?? "UTC");
  } catch (error) {
    issues.push({ pointer, detail: `${pointer.slice(1)}: ${ensureError(error).message}` });
    return undefined;
  }
}

function findInputIssues(workflow: AnyWorkflow, input: unknown, issues: ErrorIssue[]): void {
  if (typeof workflow?.run !== "function") {
    issues.push({ pointer: "/workflow", detail: "workflow must be a result of defineWorkflow" });
    return;
  }
  try {
    assertJson(input, "input");
    if (workflow.input !== undefined) assertJson(workflow.input.parse(input), "the parsed input");
  } catch (error) {
    const detail = `input does not fit "${workflow.name}": ${schemaRefusal(error)}`;
    issues.push({ pointer: "/input", detail });
  }
}
