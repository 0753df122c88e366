import { defined, type ScheduleOverlap } from "@konverge/core";
import type { NewRun } from "../store/run-actions.ts";

type Start = Pick<NewRun, "key" | "onExisting" | "maxQueued">;

const STARTS: Readonly<Record<ScheduleOverlap, Omit<Start, "key"> | undefined>> = {
  skip: { onExisting: "attach" },
  "buffer-one": { onExisting: "queue", maxQueued: 1 },
  "buffer-all": { onExisting: "queue" },
  "cancel-other": { onExisting: "supersede" },
  // The caller terminates the active runs first.
  "terminate-other": { onExisting: "reject" },
  "allow-all": undefined,
};

/** Returns how a run of a schedule starts while others are active. */
export function startOf(schedule: string, overlap: ScheduleOverlap): Start {
  const start = STARTS[overlap];
  return start === undefined ? {} : { key: `schedule/${schedule}`, ...defined(start) };
}
