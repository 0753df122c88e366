import { defined, isoTime } from "@konverge/core";
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
    seenAt: isoTime(seenMs),
    ...defined({
      paused: paused && pauseOf(paused),
      nextAt: isLive && paused === undefined ? isoTime(nextMs) : undefined,
      run: run && formatRunId({ workflow, id: run }, cluster),
    }),
  };
}

export function scheduleDetail(schedule: ScheduleState, cluster: string): ScheduleDetail {
  const { input, catchUpMs, jitterMs, nextTimesMs } = schedule;
  return {
    ...scheduleItem(schedule, cluster),
    ...defined({ input, catchUpMs, jitterMs }),
    nextTimes: nextTimesMs.map((ms) => isoTime(ms)),
  };
}

function pauseOf({ atMs, ...author }: NonNullable<ScheduleView["paused"]>) {
  return { ...author, since: isoTime(atMs) };
}
