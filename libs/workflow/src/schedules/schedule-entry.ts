import { defined } from "@konverge/core";
import type { Schedule } from "./define-schedule.ts";
import type { SchedulePause, ScheduleSpec, ScheduleView } from "./schedule-view.ts";

/** Longer than two rounds. */
const LIVE_MS = 120_000;
/** How long a schedule without a check is kept. */
export const KEPT_MS: number = 7 * 86_400_000;

/** The stored state of a schedule with its times. */
export interface ScheduleEntry extends Pick<
  ScheduleView,
  "name" | "times" | "seenMs" | "nextMs" | "run"
> {
  /** All times up to this one are handled. */
  readonly doneMs: number;
  /** JSON, because scripts would change empty lists in it. */
  readonly spec: string;
}

/** Returns the field of the entry. Includes the times: while two versions of a configuration run, each handles its own. */
export function fieldOf({ name, times }: Schedule): string {
  return `${name} ${times.text}`;
}

export function specOf({
  times,
  workflow,
  input,
  overlap,
  catchUpMs,
  jitterMs,
}: Schedule): ScheduleSpec {
  const { name, version } = workflow;
  const { rule } = times;
  return {
    workflow: name,
    version,
    rule,
    ...defined({ input }),
    overlap,
    ...defined({ catchUpMs, jitterMs }),
  };
}

/** Returns the entry of each schedule that was checked last, by name. */
export function newestOf(
  known: readonly (readonly [string, ScheduleEntry])[],
): readonly ScheduleEntry[] {
  const newest = new Map<string, ScheduleEntry>();
  for (const [, entry] of known) {
    if (entry.seenMs > (newest.get(entry.name)?.seenMs ?? -Infinity)) newest.set(entry.name, entry);
  }
  return [...newest.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export function viewOf(
  { name, times, seenMs, nextMs, run, spec }: ScheduleEntry,
  { nowMs, pause }: { readonly nowMs: number; readonly pause: string | undefined },
): ScheduleView & ScheduleSpec {
  const paused = pause === undefined ? undefined : (JSON.parse(pause) as SchedulePause);
  return {
    ...(JSON.parse(spec) as ScheduleSpec),
    name,
    times,
    seenMs,
    isLive: seenMs > nowMs - LIVE_MS,
    nextMs,
    ...defined({ run, paused }),
  };
}
