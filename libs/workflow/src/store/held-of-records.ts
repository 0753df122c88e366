import { defined } from "@konverge/core";
import type { Held } from "./run-journal-store.ts";

type Records = Pick<Held, "workflow" | "id" | "run" | "steps" | "nowMs"> &
  Partial<Pick<Held, "progress" | "parsedInput" | "failing" | "continuedBy">>;

/** The right to a run of which only the records count: no signal, wait or cancellation is pending. For replays. */
export function heldOfRecords({
  progress = new Map(),
  parsedInput,
  failing,
  continuedBy,
  ...records
}: Records): Held {
  return {
    ...records,
    progress,
    epoch: 0,
    bytes: 0,
    signalCount: 0,
    awaited: [],
    signals: [],
    waited: [],
    died: false,
    cancels: 0,
    resumes: 0,
    cancelCalls: 0,
    wakeSeq: 0,
    watched: new Set(),
    ...defined({ parsedInput, failing, continuedBy }),
  };
}
