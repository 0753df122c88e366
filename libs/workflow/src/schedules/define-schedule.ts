import { ensureError, invalidConfig, toMs, type Duration, type ErrorIssue } from "@konverge/core";
import type { AnyWorkflow, Workflow } from "../define/define-workflow.ts";
import { assertJson } from "../define/json-value.ts";
import { findWorkflowNameIssue } from "../define/run-ref.ts";
import { schemaRefusal } from "../define/schema-refusal.ts";
import { cronTimes, everyTimes, type ScheduleTimes } from "./schedule-times.ts";

export interface ScheduleOptions<I> {
  /** When: minute, hour, day of month, month, day of week, with seconds in front if there are six; or a name such as `@daily`. */
  readonly cron?: string;
  /** Or in even steps, counted from 1970 in UTC, so that all workers mean the same times. At least 1 s. */
  readonly every?: Duration;
  /** Of `cron`, such as `Europe/Berlin`. Default UTC. A time that the clocks leave out is an hour later, one that they repeat is the first. */
  readonly timeZone?: string;
  readonly workflow: Workflow<I>;
  readonly input: NoInfer<I>;
  /** When the run of an earlier time goes on: leave this time out (`attach`, default), or cancel it and begin when it has ended. */
  readonly onExisting?: "attach" | "supersede";
}

/** Starts runs of a workflow by the clock. */
export interface Schedule {
  readonly name: string;
  readonly times: ScheduleTimes;
  readonly workflow: AnyWorkflow;
  readonly input: unknown;
  readonly onExisting: "attach" | "supersede";
}

/** @throws KonvergeError `invalid_config` with everything that is wrong */
export function defineSchedule<I>(name: string, options: ScheduleOptions<I>): Schedule {
  const issues: ErrorIssue[] = [];
  const nameIssue = findWorkflowNameIssue(name);
  if (nameIssue !== undefined) issues.push({ pointer: "/name", detail: nameIssue });
  const times = timesOf(options, issues);
  const { workflow, input, onExisting = "attach" } = options;
  findInputIssues(workflow, input, issues);
  if (onExisting !== "attach" && onExisting !== "supersede") {
    issues.push({ pointer: "/onExisting", detail: "onExisting must be attach or supersede" });
  }
  if (times === undefined || issues.length > 0)
    throw invalidConfig(issues, `schedule "${name}" is`);
  return { name, times, workflow, input, onExisting };
}

function timesOf(
  { cron, every, timeZone }: Pick<ScheduleOptions<unknown>, "cron" | "every" | "timeZone">,
  issues: ErrorIssue[],
): ScheduleTimes | undefined {
  if ((cron === undefined) === (every === undefined)) {
    issues.push({ pointer: "/cron", detail: 'write either cron, such as "0 3 * * *", or every' });
    return undefined;
  }
  if (every !== undefined && timeZone !== undefined) {
    issues.push({ pointer: "/timeZone", detail: "timeZone is for cron: every counts in UTC" });
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
    issues.push({ pointer: "/workflow", detail: "workflow must be what defineWorkflow returned" });
    return;
  }
  try {
    assertJson(input, "input");
    workflow.input?.parse(input);
  } catch (error) {
    const detail = `input does not fit "${workflow.name}": ${schemaRefusal(error)}`;
    issues.push({ pointer: "/input", detail });
  }
}
