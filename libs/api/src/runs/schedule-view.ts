import { defined } from "@konverge/core";
import type { ScheduleDetail, ScheduleList } from "@konverge/contracts";
import {
  formatRunId,
  type ScheduleDetail as ScheduleState,
  type ScheduleView,
} from "@konverge/workflow";

/** Returns a schedule in the form of the API. */
export function scheduleItem(
  schedule: ScheduleView,
  cluster: string,
): ScheduleList["items"][number] {
  const { name, workflow, times, overlap, isLive, paused, seenMs, nextMs, run } = schedule;
  return {
    name,
    workflow,
    cluster,
    schedule: times,
    overlap,
    active: isLive,
    ...(paused === undefined ? {} : { paused: pauseOf(paused) }),
    seenAt: iso(seenMs),
    ...(isLive && paused === undefined ? { nextAt: iso(nextMs) } : {}),
    ...(run === undefined ? {} : { run: formatRunId({ workflow, id: run }, cluster) }),
  };
}

export function scheduleDetail(schedule: ScheduleState, cluster: string): ScheduleDetail {
  const { input, catchUpMs, jitterMs, nextTimesMs } = schedule;
  return {
    ...scheduleItem(schedule, cluster),
    ...defined({ input, catchUpMs, jitterMs }),
    nextTimes: nextTimesMs.map(iso),
  };
}

function pauseOf({ atMs, ...author }: NonNullable<ScheduleView["paused"]>) {
  return { ...author, since: iso(atMs) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
